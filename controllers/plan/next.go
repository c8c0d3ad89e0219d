package plan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// Decision is what should happen now. Its actions are done in the order of the fields.
type Decision struct {
	// Status is the whole status that is wanted. Where it names another execution than
	// the resource, it must be written before anything else is done: what exists is only
	// found again by the execution's id.
	Status v1alpha1.DBBenchmarkStatus
	// Protect asks for the finalizer.
	Protect bool
	// Collect are attempts whose reports are to be read, judged and stored.
	Collect []Attempt
	// Store are results that need no report.
	Store []results.Envelope
	// DeleteJobs are done with; DeleteMaps are beyond the limit of the history.
	DeleteJobs []*batchv1.Job
	DeleteMaps []string
	// Report is ordered before the execution is said to have ended.
	Report *ReportOrder
	// Create is the run to start.
	Create *Run
	// CleanUp is the data to drop.
	CleanUp []Cleanup
	// Release gives the resource free to be deleted; Outcome says how it went.
	Release bool
	Outcome string
	// After is when to look again without being woken; 0 is never.
	After time.Duration
}

// Begins reports whether the decision starts another execution than the resource is in.
func (d *Decision) Begins(b *v1alpha1.DBBenchmark) bool {
	now, then := d.Status.Execution, b.Status.Execution
	return now != nil && (then == nil || then.ID != now.ID)
}

// Acts reports whether something is to be done besides writing the status.
func (d *Decision) Acts() bool {
	return d.Protect || d.Release || d.Create != nil || d.Report != nil ||
		len(d.Collect)+len(d.Store)+len(d.DeleteJobs)+len(d.DeleteMaps)+len(d.CleanUp) > 0
}

// Next decides what should happen now to a benchmark. It is derived from what exists,
// so that it can be asked again at any time, and after any part of its answer was done.
func Next(now time.Time, b *v1alpha1.DBBenchmark, o Observed) Decision {
	n := next{now: now, b: b, o: o}
	n.Status = *b.Status.DeepCopy()
	if !b.DeletionTimestamp.IsZero() {
		n.retire()
		return n.Decision
	}
	n.Status.ObservedGeneration = b.Generation
	n.Status.Workload = WorkloadName(b.Spec.Workload)
	n.decide().set(now, b.Generation, &n.Status)
	n.pass()
	return n.Decision
}

// next is a decision in the making.
type next struct {
	Decision
	now time.Time
	b   *v1alpha1.DBBenchmark
	o   Observed
}

func (n *next) decide() verdict {
	if n.o.SpecError != nil {
		n.archive()
		n.keep("")
		return n.refuse(n.o.SpecError)
	}
	switch start, wanted := startWanted(n.b, n.scheduled()); {
	case wanted && !n.b.Spec.Suspend:
		n.archive()
		n.begin(start)
		n.keep(n.Status.Execution.ID)
		return verdict{isInProgress, v1alpha1.ReasonPending, "the execution is about to start"}
	case wanted && start.trigger == v1alpha1.TriggerSpec:
		n.archive()
		n.keep("")
		return verdict{isSuspended, v1alpha1.ReasonSuspended, "spec.suspend is true; no execution is under way"}
	}
	n.keep(n.Status.Execution.ID)
	n.tally()
	if n.Status.Execution.CompletionTime != nil {
		n.deleteJobs(n.Status.Execution.ID)
		v := verdictOf(&n.b.Status)
		if len(n.o.Results) >= int(n.Status.Execution.Completed+n.Status.Execution.Failed) {
			n.report(v.failure())
		}
		return v
	}
	n.deleteSpentCleanups()
	return n.proceed()
}

func (n *next) refuse(err error) verdict {
	reason := v1alpha1.ReasonInvalidSpec
	if e, ok := err.(*SpecError); ok { //nolint:errorlint // Expand returns it bare
		reason = e.Reason
	}
	return verdict{isFailed, reason, err.Error()}
}

// archive moves the current execution into the history.
func (n *next) archive() {
	s := &n.Status
	e := s.Execution
	if e == nil {
		return
	}
	summary := v1alpha1.ExecutionSummary{
		ID: e.ID, Trigger: e.Trigger, Generation: e.Generation, StartTime: e.StartTime, CompletionTime: e.CompletionTime,
		Reason: v1alpha1.ReasonCancelled, Completed: e.Completed, Total: e.Total,
		ResultsConfigMaps: s.ResultsConfigMaps, ReportConfigMap: s.ReportConfigMap,
	}
	if e.CompletionTime != nil {
		summary.Reason, summary.Passed = verdictOf(s).reason, passed(s)
	} else {
		t := metav1.NewTime(n.now).Rfc3339Copy()
		summary.CompletionTime = &t
	}
	s.History = append([]v1alpha1.ExecutionSummary{summary}, s.History...)
	s.Execution, s.Points, s.PointsTruncated, s.Latest, s.ResultsConfigMaps, s.ReportConfigMap = nil, nil, 0, nil, nil, ""
}

// keep has the Jobs of other executions than this one deleted, and of their results
// what is beyond the history's limit.
func (n *next) keep(execution string) {
	for a := range n.all() {
		if a.Execution != execution {
			n.deleteJob(a)
		}
	}
	limit := n.historyLimit()
	n.limitHistory(limit)
	n.DeleteMaps = staleMaps(n.prunable(), execution, limit)
	n.Status.ResultsConfigMaps, n.Status.ReportConfigMap = nil, ""
	for _, m := range n.o.Maps {
		switch {
		case m.Execution != execution:
		case m.Report:
			n.Status.ReportConfigMap = m.Name
		default:
			n.Status.ResultsConfigMaps = append(n.Status.ResultsConfigMaps, m.Name)
		}
	}
}

// historyLimit is the number of earlier executions to keep.
func (n *next) historyLimit() int {
	const standard = 3
	if l := n.b.Spec.HistoryLimit; l != nil {
		return int(*l) - 1
	}
	return standard - 1
}

// staleMaps are the ConfigMaps of all but the current execution and the latest limit
// of the others. It goes by the ConfigMaps alone: a status may be lost.
func staleMaps(maps []ResultMap, current string, limit int) []string {
	newest := map[string]time.Time{}
	for _, m := range maps {
		if m.Execution != current && m.Created.After(newest[m.Execution]) {
			newest[m.Execution] = m.Created
		}
	}
	var executions []string
	for e := range newest {
		executions = append(executions, e)
	}
	slices.SortFunc(executions, func(a, b string) int { return cmp.Or(newest[b].Compare(newest[a]), cmp.Compare(a, b)) })
	stale := executions[min(len(executions), limit):]
	var names []string
	for _, m := range maps {
		if slices.Contains(stale, m.Execution) {
			names = append(names, m.Name)
		}
	}
	return names
}

func (n *next) deleteJob(a Attempt) {
	if a.Job != nil && a.Job.DeletionTimestamp == nil {
		n.DeleteJobs = append(n.DeleteJobs, a.Job)
	}
}

func (n *next) deleteJobs(execution string) {
	for a := range n.all() {
		if a.Execution == execution {
			n.deleteJob(a)
		}
	}
}

// all are the Jobs and pods of the benchmark, those that drop data included.
func (n *next) all() iter.Seq[Attempt] {
	return func(yield func(Attempt) bool) {
		for _, attempts := range [][]Attempt{n.o.Attempts, n.o.Cleanups} {
			for _, a := range attempts {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// tally counts the results and sums them up. What was said of an execution that has
// ended stays, unless the spec has changed since; and results that are then gone, somebody
// has deleted.
func (n *next) tally() {
	e := n.Status.Execution
	if e.CompletionTime != nil && (n.b.Status.ObservedGeneration == n.b.Generation || len(n.o.Results) < int(e.Completed+e.Failed)) {
		return
	}
	e.Total, e.Completed, e.Failed = int32(len(n.o.Runs)), 0, 0
	if a := e.ActiveRun; a != nil {
		// Until it is settled, it is what tells that the run was started.
		if n.settled(a.ID, a.Attempt) {
			e.ActiveRun = nil
		}
	}
	var all []results.Envelope
	for _, r := range n.o.Runs {
		result, ok := n.o.Results[r.ID]
		switch {
		case !ok:
			continue
		case result.Failure == nil:
			e.Completed++
		default:
			e.Failed++
		}
		all = append(all, result)
	}
	e.Progress = fmt.Sprintf("%d/%d", e.Completed, e.Total)
	summary := n.o.Memo.Summarise(all, n.targets(), n.maxSpreadPercent())
	compareRuns(summary.Points, all)
	n.Status.Points, n.Status.PointsTruncated, n.Status.Latest = summary.Points, summary.Truncated, summary.Latest
}

func (n *next) maxSpreadPercent() int32 {
	const standard = 10
	if p := n.b.Spec.MaxSpreadPercent; p != nil {
		return *p
	}
	return standard
}

// proceed takes the execution one step on.
func (n *next) proceed() verdict {
	failure := n.firstFailure()
	if v, busy := n.attend(); busy {
		return v
	}
	run := n.pending()
	if failure != nil && n.b.Spec.OnFailure != v1alpha1.OnFailureContinue {
		run = nil
	}
	if run != nil && n.b.Spec.Suspend {
		return verdict{isSuspended, v1alpha1.ReasonSuspended, "spec.suspend is true; no further run is started"}
	}
	outdated := n.outdated(run)
	if run == nil && len(outdated) == 0 {
		return n.conclude(failure, nil)
	}
	if v, wait := n.wait(); wait {
		return v
	}
	faults, dropped := n.drop(outdated)
	switch {
	case !dropped:
		return verdict{isInProgress, v1alpha1.ReasonRunning, "data that is no longer needed is dropped"}
	case run == nil:
		return n.conclude(failure, faults)
	}
	if !slices.Contains(n.b.Finalizers, Finalizer) {
		n.Protect = true
		return verdict{isInProgress, v1alpha1.ReasonPending, "the first run is about to start"}
	}
	n.Create = run
	if refusal := n.o.CannotCreate; refusal != nil {
		return refusal.verdict()
	}
	return verdict{isInProgress, v1alpha1.ReasonRunning, "the run " + run.ID + " is about to start"}
}

// settled reports whether an attempt at a run has come to a result, or was lost and is
// to be repeated.
func (n *next) settled(run string, attempt int32) bool {
	_, stored := n.o.Results[run]
	return stored || n.o.Losses[run] > attempt
}

// attend sees to the attempts of the execution, and to the run that was under way and
// has none any more. It is busy while one of them is not settled.
func (n *next) attend() (v verdict, busy bool) {
	for _, a := range n.o.Attempts {
		if a.Execution != n.Status.Execution.ID {
			continue
		}
		run := n.run(a.Run)
		switch {
		case n.settled(a.Run, a.Number) || run == nil:
			n.deleteJob(a)
		case a.Job == nil:
			// Left over without a Job: see lost.
		default:
			v, busy = n.examine(a, *run), true
		}
	}
	if lost := n.lost(); !busy && lost != nil {
		n.store(Failed(n.now, *lost, v1alpha1.ReasonRunnerLost, "the run's Job was deleted by somebody else before its report was read"))
		return verdict{isInProgress, v1alpha1.ReasonRunning, "the run " + lost.ID + " was lost"}, true
	}
	return v, busy
}

// store has a result kept, or the loss of a run that is to be repeated.
func (n *next) store(e results.Envelope) {
	n.Store = append(n.Store, Repeated(&n.b.Spec, n.o.Losses[e.Run], e))
}

// examine does with an attempt what its state asks for.
func (n *next) examine(a Attempt, run Run) verdict {
	e := n.Status.Execution
	e.ActiveRun = n.activeRun(a, run)
	d := diagnose(n.now, a, startLimit(&n.b.Spec))
	n.lookAgain(d.again)
	switch d.state {
	case over:
		n.Collect = append(n.Collect, a)
	case broken:
		n.store(newResult(n.now, run, d.failure()))
	case held:
		return verdict{isInProgress, d.reason, shortened(d.message)}
	case underWay:
		if a.runs() {
			n.lookAgain(ProgressEvery(a))
		}
	}
	number := slices.IndexFunc(n.o.Runs, func(r Run) bool { return r.ID == run.ID }) + 1
	return verdict{isInProgress, v1alpha1.ReasonRunning, fmt.Sprintf("the run %s is under way (%d of %d)", run.ID, number, e.Total)}
}

func (n *next) lookAgain(after time.Duration) {
	if after > 0 && (n.After == 0 || after < n.After) {
		n.After = after
	}
}

func (n *next) run(id string) *Run {
	for i := range n.o.Runs {
		if n.o.Runs[i].ID == id {
			return &n.o.Runs[i]
		}
	}
	return nil
}

// lost is the run that the status tells of as under way, if it has neither a Job nor a
// result: it was started, and is not started again.
func (n *next) lost() *Run {
	e := n.b.Status.Execution
	if e.ActiveRun == nil || n.settled(e.ActiveRun.ID, e.ActiveRun.Attempt) {
		return nil
	}
	for _, a := range n.o.Attempts {
		if a.Execution == e.ID && a.Run == e.ActiveRun.ID && a.Number == e.ActiveRun.Attempt && (a.Job != nil || !a.Quiet()) {
			return nil
		}
	}
	return n.run(e.ActiveRun.ID)
}

// pending is the first run that has no result yet.
func (n *next) pending() *Run {
	for _, r := range n.o.Runs {
		if _, stored := n.o.Results[r.ID]; !stored {
			r.Attempt = n.o.Losses[r.ID]
			return &r
		}
	}
	return nil
}

// firstFailure is that of the run that failed first.
func (n *next) firstFailure() *results.Envelope {
	var first *results.Envelope
	for _, r := range n.o.Runs {
		if e, ok := n.o.Results[r.ID]; ok && e.Failure != nil && (first == nil || e.Finished.Before(first.Finished)) {
			first = &e
		}
	}
	return first
}

// wait says what stands before the next run: what is left of earlier ones, or others
// that have a claim to the server.
func (n *next) wait() (verdict, bool) {
	for a := range n.all() {
		if !n.cleansHere(a) && !a.Quiet() {
			return verdict{isInProgress, v1alpha1.ReasonPending, "waiting for the pod of an earlier run to end"}, true
		}
	}
	me := Claim{n.b.Namespace, n.b.Name, n.Status.Execution.StartTime.Time, n.b.CreationTimestamp.Time}
	position := 1
	var holder *Claim
	for i, c := range n.o.Queue {
		if c.Compare(me) >= 0 {
			continue
		}
		position++
		if holder == nil || c.Compare(*holder) < 0 {
			holder = &n.o.Queue[i]
		}
	}
	switch {
	case holder != nil:
		return verdict{isInProgress, v1alpha1.ReasonTargetBusy,
			fmt.Sprintf("%s holds the server; this is number %d in the queue", holder, position)}, true
	case len(n.o.Occupants) > 0:
		return verdict{isInProgress, v1alpha1.ReasonTargetBusy,
			fmt.Sprintf("%s holds the server until its run has ended; this is number 2 in the queue", n.o.Occupants[0])}, true
	}
	return verdict{}, false
}

// conclude ends the execution. Data that could not be dropped is said, and fails nothing:
// what was measured was measured before.
func (n *next) conclude(failure *results.Envelope, notDropped []string) verdict {
	e := n.Status.Execution
	e.ActiveRun = nil
	v := n.judgement(failure)
	if len(notDropped) > 0 {
		v.message += "; data was not dropped: " + shortened(strings.Join(notDropped, "; "))
	}
	if n.report(v.failure()) {
		return verdict{isInProgress, v1alpha1.ReasonRunning, "the runs are over; the report is written"}
	}
	t := metav1.NewTime(n.lastFinished()).Rfc3339Copy()
	e.CompletionTime = &t
	return v
}

// lastFinished is when the last of the runs ended that have results.
func (n *next) lastFinished() (last time.Time) {
	for _, r := range n.o.Results {
		if r.Finished.After(last) {
			last = r.Finished
		}
	}
	return last
}

func (n *next) judgement(failure *results.Envelope) verdict {
	e := n.Status.Execution
	switch {
	case failure == nil:
		return verdict{isComplete, v1alpha1.ReasonComplete, fmt.Sprintf("all %d runs succeeded", e.Total)}
	case n.b.Spec.OnFailure == v1alpha1.OnFailureContinue:
		return verdict{isFailed, v1alpha1.ReasonRunsFailed,
			fmt.Sprintf("%d of %d runs failed, the first of them %s: %s: %s", e.Failed, e.Total, failure.Run, failure.Failure.Reason, failure.Failure.Message)}
	}
	return verdict{isFailed, failure.Failure.Reason, fmt.Sprintf("the run %s failed: %s", failure.Run, failure.Failure.Message)}
}
