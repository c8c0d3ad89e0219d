package plan

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// cleanupLimit bounds the wait for a Job that cleans up: nothing that goes wrong there,
// such as a server that is gone, may keep a benchmark for ever.
const cleanupLimit = 90 * time.Second

// Cleanup is data to be dropped: what the benchmark has made in a target.
type Cleanup struct {
	// Execution is the one whose data it is, FinalExecution at the end of the resource.
	Execution string
	Target    string
	// Dataset is the one that is there.
	Dataset string
	// Workload and Load are those that made it.
	Workload v1alpha1.Workload
	Load     v1alpha1.Load
}

// FinalExecution stands for all executions of a benchmark that is deleted.
const FinalExecution = "cleanup"

// outdated are the datasets of several runs that no run needs any more: before a run
// that of an earlier dataset in its target, and at the end (nil) those in all targets.
func (n *next) outdated(before *Run) []Cleanup {
	var all []Cleanup
	for _, t := range n.b.Spec.Targets {
		last := n.lastBegun(t.Name)
		switch {
		case last == nil || last.Dataset == "",
			before != nil && (before.Target != t.Name || before.Dataset == last.Dataset),
			!n.droppable(*last):
			continue
		}
		all = append(all, Cleanup{n.Status.Execution.ID, t.Name, last.Dataset, last.Workload, last.Load})
	}
	return all
}

// lastBegun is the last run in a target that has come to a result.
func (n *next) lastBegun(target string) *Run {
	for i := len(n.o.Runs) - 1; i >= 0; i-- {
		r := &n.o.Runs[i]
		if _, begun := n.o.Results[r.ID]; begun && r.Target == target {
			return r
		}
	}
	return nil
}

// droppable reports whether the dataset that a run has used is to be dropped: as
// spec.cleanup says, and where any run has come far enough to make it.
func (n *next) droppable(used Run) bool {
	made, failed := false, false
	for _, r := range n.o.Runs {
		e, begun := n.o.Results[r.ID]
		if !begun || r.Target != used.Target || r.Dataset != used.Dataset {
			continue
		}
		failed = failed || e.Failure != nil
		made = made || e.Failure == nil || !slices.Contains(madeNothing, e.Failure.Reason)
	}
	switch n.b.Spec.Cleanup {
	case v1alpha1.CleanupNever:
		return false
	case v1alpha1.CleanupOnSuccess:
		return made && !failed
	}
	return made
}

// madeNothing are the reasons of a run that has changed nothing in its target.
var madeNothing = append([]string{
	v1alpha1.ReasonAuthenticationFailed, v1alpha1.ReasonTLSFailed, v1alpha1.ReasonDatabaseNotOwned, v1alpha1.ReasonInvalidSpec,
}, neverStarted...)

// neverStarted are the reasons of a run whose runner did not get to the server.
var neverStarted = []string{
	v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonConfigMapNotFound, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonPodRejected,
	v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonUnschedulable,
}

// drop has data dropped by a Job for each target, and waits for them for a bounded time.
// It is done where none is left to wait for; the faults say where data may remain.
func (n *next) drop(all []Cleanup) (faults []string, done bool) {
	waiting := false
	for _, c := range all {
		a, ok := n.cleanup(c)
		if !ok {
			if r := n.o.CannotCreate; r != nil && n.now.Sub(n.lastFinished()) > cleanupLimit {
				faults = append(faults, c.Target+": "+r.message())
				continue
			}
			n.CleanUp = append(n.CleanUp, c)
			continue
		}
		fault, ended := n.cleanupOutcome(a)
		left := a.Job.CreationTimestamp.Add(cleanupLimit).Sub(n.now)
		switch {
		case !ended && left > 0:
			waiting = true
			n.lookAgain(left)
		case !ended:
			faults = append(faults, c.Target+": it did not end in time")
		case fault != "":
			faults = append(faults, c.Target+": "+fault)
		}
	}
	return faults, !waiting && len(n.CleanUp) == 0
}

func (n *next) cleanup(c Cleanup) (Attempt, bool) {
	for _, a := range n.o.Cleanups {
		if a.Job != nil && a.Execution == c.Execution && a.Target == c.Target && a.Dataset == c.Dataset {
			return a, true
		}
	}
	return Attempt{}, false
}

// cleansHere reports whether an attempt drops data of the current execution, which
// drop waits for.
func (n *next) cleansHere(a Attempt) bool {
	return a.Run == "" && a.Target != "" && a.Execution == n.Status.Execution.ID
}

// deleteSpentCleanups deletes the Jobs that have dropped a dataset once a run has used
// the next one. Until then they tell that it is done.
func (n *next) deleteSpentCleanups() {
	for _, a := range n.o.Cleanups {
		if a.Execution != n.Status.Execution.ID {
			continue
		}
		if last := n.lastBegun(a.Target); last != nil && last.Dataset != a.Dataset {
			n.deleteJob(a)
		}
	}
}

// cleanupOutcome says how a Job that cleans up has ended, if it has.
func (n *next) cleanupOutcome(a Attempt) (fault string, done bool) {
	for i := range a.Pods {
		t := terminated(&a.Pods[i])
		if t == nil {
			continue
		}
		if t.ExitCode == 0 {
			return "", true
		}
		if m, err := contract.DecodeTerminationMessage([]byte(t.Message)); err == nil && m.Failure != nil {
			return m.Failure.Error(), true
		}
		return "the runner failed", true
	}
	if end := jobEnd(a.Job); end != nil && end.Type == batchv1.JobComplete {
		return "", true
	}
	d := diagnose(n.now, a, cleanupLimit)
	n.lookAgain(d.again)
	return d.message, d.state == broken
}
