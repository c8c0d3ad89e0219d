package plan

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

const (
	// retireLimit bounds the wait for the last run's pod after a deletion.
	retireLimit = 2 * time.Minute
	// cleanupLimit bounds the wait for a Job that cleans up: nothing that goes wrong
	// there, such as a server that is gone, may keep the resource for ever.
	cleanupLimit = 90 * time.Second
)

// retire ends what a deleted benchmark has under way, has its data dropped where a run
// may not have done so itself, and then gives the resource free.
func (n *next) retire() {
	if !slices.Contains(n.b.Finalizers, Finalizer) {
		return
	}
	busy := false
	for _, a := range n.o.Attempts {
		n.deleteJob(a)
		busy = busy || !a.Quiet() || (a.Job != nil && a.Job.DeletionTimestamp == nil)
	}
	left := n.b.DeletionTimestamp.Add(retireLimit).Sub(n.now)
	switch {
	case busy && left > 0:
		n.lookAgain(left)
	case n.clean():
		n.Release = true
	default:
		n.cleanUp()
	}
}

// clean reports whether the runs have cleaned up behind themselves, or should not.
func (n *next) clean() bool {
	if n.b.Spec.Cleanup == v1alpha1.CleanupNever {
		return true
	}
	e := n.b.Status.Execution
	if e == nil || e.CompletionTime == nil || PrepareMode(&n.b.Spec) != v1alpha1.PreparePerRun {
		return false
	}
	return e.Failed == 0 || (e.Failed == 1 && slices.Contains(neverStarted, verdictOf(&n.b.Status).reason))
}

// neverStarted are the reasons of a run whose runner did not get to the server.
var neverStarted = []string{
	v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonConfigMapNotFound, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonPodRejected,
	v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonUnschedulable,
}

// cleanUp has a Job for each target, and waits for them for a bounded time.
func (n *next) cleanUp() {
	var faults []string
	waiting := false
	for _, t := range n.b.Spec.Targets {
		a, ok := n.o.Cleanups[t.Name]
		if !ok {
			n.CleanUp = append(n.CleanUp, t.Name)
			continue
		}
		fault, done := n.cleanupOutcome(a)
		left := a.Job.CreationTimestamp.Add(cleanupLimit).Sub(n.now)
		switch {
		case !done && left > 0:
			waiting = true
			n.lookAgain(left)
		case !done:
			faults = append(faults, t.Name+": it did not end in time")
		case fault != "":
			faults = append(faults, t.Name+": "+fault)
		}
	}
	if waiting || len(n.CleanUp) > 0 {
		return
	}
	n.Release = true
	n.Outcome = shortened(strings.Join(faults, "; "))
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
