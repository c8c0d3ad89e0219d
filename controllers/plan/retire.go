package plan

import (
	"slices"
	"strings"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
)

// retireLimit bounds the wait for the last run's pod after a deletion.
const retireLimit = 2 * time.Minute

// retire ends what a deleted benchmark has under way, has its data dropped where a run
// may not have done so itself, and then gives the resource free.
func (n *next) retire() {
	if !slices.Contains(n.b.Finalizers, Finalizer) {
		return
	}
	busy := false
	for a := range n.all() {
		if a.Execution == FinalExecution {
			continue
		}
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

// cleanUp drops the data in all targets, and then gives the resource free.
func (n *next) cleanUp() {
	var all []Cleanup
	for _, t := range n.b.Spec.Targets {
		all = append(all, Cleanup{Execution: FinalExecution, Target: t.Name, Workload: n.b.Spec.Workload, Load: n.b.Spec.Load})
	}
	faults, done := n.drop(all)
	if !done {
		return
	}
	n.Release = true
	n.Outcome = shortened(strings.Join(faults, "; "))
}
