package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// Report is what a runner's pod left behind.
type Report struct {
	Pod *corev1.Pod
	// Record is what its log says; Err is why it says nothing.
	Record *contract.Record
	Err    error
}

// Judge turns the reports of an attempt's pods into the result of its run.
func Judge(now time.Time, run Run, a Attempt, reports []Report) results.Envelope {
	e := newResult(now, run, nil)
	e.Finished = time.Time{}
	for _, r := range reports {
		if t := terminated(r.Pod); t != nil && t.FinishedAt.After(e.Finished) {
			e.Finished = t.FinishedAt.UTC()
		}
		if r.Record != nil {
			e.Records = append(e.Records, *r.Record)
		}
	}
	e.Window = results.CommonWindow(e.Records)
	if e.Finished.IsZero() {
		e.Finished = now.UTC()
	}
	slices.SortFunc(e.Records, func(a, b contract.Record) int { return cmp.Compare(a.Start.Replica, b.Start.Replica) })
	worst := worstOf(reports)
	e.Failure = worst.failure
	if e.Failure == nil && a.Job != nil {
		e.Failure = incomplete(a.Job, e.Records)
	}
	if f := e.Failure; f != nil && a.Job != nil && (worst.weight <= consequence || f.Reason == v1alpha1.ReasonRunnerLost) {
		if end := jobEnd(a.Job); end != nil && end.Reason == batchv1.JobReasonDeadlineExceeded {
			e.Failure = diagnoseJobEnd(end).failure()
		}
	}
	return e
}

// worstOf is the finding that tells most of the cause; it has no failure where all
// reports are of success.
func worstOf(reports []Report) (worst finding) {
	for _, r := range reports {
		if f := judge(r, len(reports) > 1); f.failure != nil && (worst.failure == nil || f.weight > worst.weight) {
			worst = f
		}
	}
	return worst
}

// incomplete says what is missing in records that all tell of success.
func incomplete(job *batchv1.Job, records []contract.Record) *results.Failure {
	if want := replicas(job); len(records) < want {
		return failure(v1alpha1.ReasonRunnerLost, "%d of the run's %d pods are gone, and their reports with them", want-len(records), want)
	}
	for i, r := range records {
		if int(r.Start.Replica) != i {
			return failure(v1alpha1.ReasonInvalidRecord, "the reports are of the replicas %d and %d, where each pod should have one of its own", records[max(i-1, 0)].Start.Replica, r.Start.Replica)
		}
	}
	return nil
}

// finding is why a report is not one of success, and how much it tells of the cause:
// when one pod of a run fails, the others say so, too.
type finding struct {
	failure *results.Failure
	weight  int
}

// The weights of findings.
const (
	// stopped: another pod failed.
	stopped = iota
	// consequence: the pod was told to end, by whatever ended the run.
	consequence
	// missed: another pod was not there.
	missed
	// silent: the pod has left no report.
	silent
	// cause: the pod's own failure.
	cause
)

// newResult is the result of a run without a record.
func newResult(now time.Time, run Run, failure *results.Failure) results.Envelope {
	return results.Envelope{
		Version: results.EnvelopeVersion, Run: run.ID, Point: run.Point, Target: run.Target,
		Parameters: run.Parameters, Iteration: run.Iteration, Clients: run.Load.Clients,
		Finished: now.UTC(), Failure: failure,
	}
}

// Failed is the result of a run that came to nothing.
func Failed(now time.Time, run Run, reason, message string) results.Envelope {
	return newResult(now, run, &results.Failure{Reason: reason, Message: shortened(message)})
}

// Repeated is what is kept of a result: the result itself or, where it tells of a loss of
// infrastructure and spec.retries allows it, a note that the run was lost and is to be
// repeated. losses is how often that was so before.
func Repeated(spec *v1alpha1.DBBenchmarkSpec, losses int32, e results.Envelope) results.Envelope {
	if e.Failure != nil && e.Failure.Reason == v1alpha1.ReasonRunnerLost && losses < spec.Retries {
		e.Lost = losses + 1
	}
	return e
}

// judge says why a report is not one of success. Of several pods, those that are deleted
// without any sign of why are deleted because one of them has failed.
func judge(r Report, several bool) finding {
	t := terminated(r.Pod)
	why := disrupted(r.Pod)
	switch {
	case t != nil && t.Reason == "OOMKilled":
		return finding{failure(v1alpha1.ReasonRunnerOOMKilled,
			"the runner in the pod %s exceeded its memory limit; raise spec.runner.template.resources.limits.memory, or lower load.clients", r.Pod.Name), cause}
	case r.Record != nil:
		return judgeRecord(r, t, several)
	case why != "":
		return finding{failure(v1alpha1.ReasonRunnerLost, "the pod %s was taken away before its runner had reported: %s", r.Pod.Name, why), cause}
	case r.Pod.DeletionTimestamp != nil && several:
		return finding{failure(v1alpha1.ReasonRunnerLost, "the pod %s was deleted before its runner had reported", r.Pod.Name), consequence}
	case t == nil || r.Pod.DeletionTimestamp != nil:
		return finding{failure(v1alpha1.ReasonRunnerLost, "the pod %s was deleted before its runner had reported", r.Pod.Name), silent}
	}
	return judgeWithoutRecord(r, t)
}

func judgeRecord(r Report, t *corev1.ContainerStateTerminated, several bool) finding {
	if f := r.Record.Result.Failure; f != nil {
		return runnerFinding(r.Pod, f, several)
	}
	if t == nil || t.ExitCode != 0 {
		return finding{failure(v1alpha1.ReasonInvalidRecord, "the record tells of success, but the runner did not end with exit code 0"), silent}
	}
	return finding{}
}

// judgeWithoutRecord falls back to the termination message, which outlives the log.
func judgeWithoutRecord(r Report, t *corev1.ContainerStateTerminated) finding {
	if m, err := contract.DecodeTerminationMessage([]byte(t.Message)); err == nil && m.Failure != nil {
		return runnerFinding(r.Pod, m.Failure, false)
	}
	switch {
	case !errors.As(r.Err, new(*contract.RecordError)):
		return finding{failure(v1alpha1.ReasonRunnerLost, "the log of the pod %s is gone: %v", r.Pod.Name, r.Err), silent}
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		return finding{failure(v1alpha1.ReasonRunnerError, "the container cannot be started: %s; spec.runner.template.image must hold /runner", t.Message), cause}
	case t.ExitCode == 0:
		return finding{failure(v1alpha1.ReasonInvalidRecord, "the runner ended with exit code 0 but without a complete record: %v", r.Err), silent}
	}
	return finding{failure(v1alpha1.ReasonInvalidRecord, "the runner ended with exit code %d and without a complete record: %v", t.ExitCode, r.Err), silent}
}

// runnerFinding is a runner's own finding. That it was interrupted is a consequence,
// of which the pod may know the cause.
func runnerFinding(p *corev1.Pod, f *contract.Failure, several bool) finding {
	message := f.Message
	if number := strconv.Itoa(int(f.MySQLError)); f.MySQLError != 0 && !strings.Contains(message, number) {
		message += " (MySQL error " + number + ")"
	}
	if f.Hint != "" {
		message += "; " + f.Hint
	}
	switch f.Class {
	case contract.ClassInterrupted:
		if why := takenBecause(p); why != "" && (!several || disrupted(p) != "") {
			return finding{failure(v1alpha1.ReasonRunnerLost, "the pod %s was taken away during the run: %s", p.Name, why), cause}
		}
		return finding{failure(v1alpha1.ReasonInterrupted, "%s", message), consequence}
	case contract.ClassReplicaLost:
		return finding{failure(v1alpha1.ReasonRunnerLost, "%s", message), missed}
	case contract.ClassPeerFailed:
		return finding{failure(v1alpha1.ReasonPeerFailed, "%s", message), stopped}
	case contract.ClassInvalidRunSpec:
		return finding{failure(v1alpha1.ReasonInvalidSpec, "%s", message), cause}
	}
	return finding{failure(string(f.Class), "%s", message), cause}
}

// takenBecause says why a pod was ended from outside, "" where it was not.
func takenBecause(p *corev1.Pod) string {
	if why := disrupted(p); why != "" || p.DeletionTimestamp == nil {
		return why
	}
	return "it was deleted"
}

// disrupted says what the cluster gives as the reason for having taken a pod: an
// eviction, a preemption, a node that is drained or gone.
func disrupted(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	if p.Status.Reason != "" {
		return p.Status.Reason + ": " + p.Status.Message
	}
	return ""
}

func failure(reason, format string, args ...any) *results.Failure {
	return &results.Failure{Reason: reason, Message: shortened(fmt.Sprintf(format, args...))}
}

// maxMessage bounds texts that come from elsewhere, in bytes.
const maxMessage = 1024

func shortened(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return text[:maxMessage] + "…"
}
