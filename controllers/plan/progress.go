package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

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

// Add sums up what the pods have said.
func (p *Progress) Add(pods []contract.Progress) {
	p.PercentDone = -1
	var perSecond int64
	for i, said := range pods {
		const nanosPerMicro = 1000
		if i == 0 || said.PercentDone < p.PercentDone {
			p.Phase, p.PercentDone = string(said.Phase), said.PercentDone
		}
		perSecond += said.EventsPerSecondMilli
		p.P99Micros = max(p.P99Micros, said.P99Nanos/nanosPerMicro)
	}
	if perSecond > 0 {
		p.EventsPerSecond = fmt.Sprintf("%d.%03d", perSecond/1000, perSecond%1000)
	}
}

// UnderWay is the attempt of the current execution whose pods run, nil where there is
// none.
func UnderWay(b *v1alpha1.DBBenchmark, attempts []Attempt) *Attempt {
	e := b.Status.Execution
	if e == nil || e.CompletionTime != nil || !b.DeletionTimestamp.IsZero() {
		return nil
	}
	for i, a := range attempts {
		if a.Execution == e.ID && a.runs() {
			return &attempts[i]
		}
	}
	return nil
}

// runs reports whether all pods of an attempt are at work.
func (a Attempt) runs() bool {
	if a.Job == nil || a.Job.DeletionTimestamp != nil || len(a.Pods) < replicas(a.Job) {
		return false
	}
	for i := range a.Pods {
		if a.Pods[i].Status.Phase != corev1.PodRunning || ended(&a.Pods[i]) {
			return false
		}
	}
	return true
}

// ProgressEvery is the time between two looks at the logs of an attempt: longer where it
// has many pods, so that it asks little of the API.
func ProgressEvery(a Attempt) time.Duration {
	const every, pods = 10 * time.Second, 8
	return every * time.Duration((len(a.Pods)+pods-1)/pods)
}

// progressWrites is how often progress of the measured part is worth a write to the API.
// With the rest of a run's writes, and one for a load that takes long, this makes eight.
const progressWrites = 3

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
		return 2 + min(max(percent, 0)*progressWrites/100, progressWrites-1)
	}
	return 0
}
