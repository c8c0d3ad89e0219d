package plan

import (
	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// Progress is what the pods of a run under way have said last.
type Progress struct {
	Run     string
	Attempt int32
	Phase   string
	// PercentDone is 0 to 100, -1 where it is unknown.
	PercentDone int32
	// EventsPerSecond is of all pods, P99Micros the longest among them.
	EventsPerSecond string
	P99Micros       int64
}

// percentStep is the progress of the measured part that is worth a write to the API: it
// makes four for a run that takes long.
const percentStep = 25

// activeRun is the run of an attempt with its progress: the latest, where that has
// changed by enough, or what is on record.
func (n *next) activeRun(a Attempt, run Run) *v1alpha1.ActiveRun {
	active := &v1alpha1.ActiveRun{
		ID: run.ID, Target: run.Target, Parameters: run.Parameters, Iteration: run.Iteration, Attempt: a.Number, StartTime: a.Job.CreationTimestamp,
	}
	if was := n.b.Status.Execution.ActiveRun; was != nil && was.ID == active.ID && was.Attempt == active.Attempt {
		active.Phase, active.PercentDone, active.EventsPerSecond, active.P99Micros = was.Phase, was.PercentDone, was.EventsPerSecond, was.P99Micros
	}
	p := n.o.Progress
	if p == nil || p.Run != active.ID || p.Attempt != active.Attempt || !notable(active, p) {
		return active
	}
	active.Phase, active.PercentDone, active.EventsPerSecond, active.P99Micros = p.Phase, nil, p.EventsPerSecond, p.P99Micros
	if p.PercentDone >= 0 {
		active.PercentDone = new(p.PercentDone)
	}
	return active
}

// notable reports whether progress is worth a write to the API.
func notable(was *v1alpha1.ActiveRun, p *Progress) bool {
	percent := int32(0)
	if was.PercentDone != nil {
		percent = *was.PercentDone
	}
	return step(p.Phase, p.PercentDone) > step(was.Phase, percent)
}

// step numbers what is told of a run: that it loads, that it measures, and how far it is.
func step(phase string, percent int32) int32 {
	switch contract.Phase(phase) {
	case contract.PhasePrepare:
		return 1
	case contract.PhaseWarmup, contract.PhaseMeasure:
		return 2 + max(percent, 0)/percentStep
	}
	return 0
}
