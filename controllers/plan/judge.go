package plan

import (
	"errors"
	"fmt"
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
		if f := judge(r); f != nil && (e.Failure == nil || e.Failure.Reason == v1alpha1.ReasonInterrupted) {
			e.Failure = f
		}
	}
	e.Window = results.CommonWindow(e.Records)
	if e.Finished.IsZero() {
		e.Finished = now.UTC()
	}
	if f := e.Failure; f != nil && a.Job != nil && (f.Reason == v1alpha1.ReasonInterrupted || f.Reason == v1alpha1.ReasonRunnerLost) {
		if end := jobEnd(a.Job); end != nil && end.Reason == batchv1.JobReasonDeadlineExceeded {
			e.Failure = diagnoseJobEnd(end).failure()
		}
	}
	return e
}

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

// judge says why a report is not one of success, nil where it is.
func judge(r Report) *results.Failure {
	t := terminated(r.Pod)
	switch {
	case t != nil && t.Reason == "OOMKilled":
		return failure(v1alpha1.ReasonRunnerOOMKilled, "the runner exceeded its memory limit; raise spec.runner.template.resources.limits.memory, or lower load.clients")
	case r.Record != nil:
		return judgeRecord(r, t)
	case t == nil:
		return failure(v1alpha1.ReasonRunnerLost, "the pod %s ended before its runner reported: %s %s", r.Pod.Name, r.Pod.Status.Reason, r.Pod.Status.Message)
	}
	return judgeWithoutRecord(r, t)
}

func judgeRecord(r Report, t *corev1.ContainerStateTerminated) *results.Failure {
	if f := r.Record.Result.Failure; f != nil {
		return runnerFailure(r.Pod, f)
	}
	if t == nil || t.ExitCode != 0 {
		return failure(v1alpha1.ReasonInvalidRecord, "the record tells of success, but the runner did not end with exit code 0")
	}
	return nil
}

// judgeWithoutRecord falls back to the termination message, which outlives the log.
func judgeWithoutRecord(r Report, t *corev1.ContainerStateTerminated) *results.Failure {
	if m, err := contract.DecodeTerminationMessage([]byte(t.Message)); err == nil && m.Failure != nil {
		return runnerFailure(r.Pod, m.Failure)
	}
	switch {
	case taken(r.Pod):
		return failure(v1alpha1.ReasonRunnerLost, "the pod %s was taken away before its runner had reported: %s", r.Pod.Name, takenBecause(r.Pod))
	case !errors.As(r.Err, new(*contract.RecordError)):
		return failure(v1alpha1.ReasonRunnerLost, "the log of the pod %s is gone: %v", r.Pod.Name, r.Err)
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		return failure(v1alpha1.ReasonRunnerError, "the container cannot be started: %s; spec.runner.template.image must hold /runner", t.Message)
	case t.ExitCode == 0:
		return failure(v1alpha1.ReasonInvalidRecord, "the runner ended with exit code 0 but without a complete record: %v", r.Err)
	}
	return failure(v1alpha1.ReasonInvalidRecord, "the runner ended with exit code %d and without a complete record: %v", t.ExitCode, r.Err)
}

// runnerFailure is a runner's own finding. That it was interrupted is a consequence,
// of which the pod may know the cause.
func runnerFailure(p *corev1.Pod, f *contract.Failure) *results.Failure {
	if f.Class == contract.ClassInterrupted && taken(p) {
		return failure(v1alpha1.ReasonRunnerLost, "the pod %s was taken away during the run: %s", p.Name, takenBecause(p))
	}
	reason := string(f.Class)
	if f.Class == contract.ClassInvalidRunSpec {
		reason = v1alpha1.ReasonInvalidSpec
	}
	message := f.Message
	if number := strconv.Itoa(int(f.MySQLError)); f.MySQLError != 0 && !strings.Contains(message, number) {
		message += " (MySQL error " + number + ")"
	}
	if f.Hint != "" {
		message += "; " + f.Hint
	}
	return failure(reason, "%s", message)
}

// taken reports whether a pod was ended from outside.
func taken(p *corev1.Pod) bool { return takenBecause(p) != "" }

func takenBecause(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	switch {
	case p.Status.Reason != "":
		return p.Status.Reason + ": " + p.Status.Message
	case p.DeletionTimestamp != nil:
		return "it was deleted"
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
