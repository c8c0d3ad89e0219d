package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// ReportOrder asks for the report of the execution.
type ReportOrder struct {
	Completed time.Time
	// Failure is why the execution failed, empty where it did not.
	Failure string
}

// WantsBaseline reports whether the baseline is needed: the thresholds are about to be
// judged. Until then it is not read.
func WantsBaseline(b *v1alpha1.DBBenchmark, o *Observed) bool {
	return b.Spec.Baseline != nil && (len(o.Results) == len(o.Runs) || anyFailed(o.Results))
}

func anyFailed(all map[string]results.Envelope) bool {
	for _, e := range all {
		if e.Failure != nil {
			return true
		}
	}
	return false
}

// BaselineExecution is the earlier execution that spec.baseline.previous names: the
// latest that was complete and not found wanting. It is nil where there is none.
func BaselineExecution(b *v1alpha1.DBBenchmark, history []v1alpha1.ExecutionSummary) *v1alpha1.ExecutionSummary {
	if b.Spec.Baseline == nil || !b.Spec.Baseline.Previous {
		return nil
	}
	for i, h := range history {
		if h.Reason == v1alpha1.ReasonComplete && (h.Passed == nil || *h.Passed) {
			return &history[i]
		}
	}
	return nil
}

// limitHistory keeps the latest executions, and the baseline beyond them.
func (n *next) limitHistory(limit int) {
	all := n.Status.History
	kept := all[:min(len(all), limit)]
	if base := BaselineExecution(n.b, all[len(kept):]); base != nil && BaselineExecution(n.b, kept) == nil {
		kept = append(slices.Clone(kept), *base)
	}
	n.Status.History = bounded(kept)
}

// maxHistoryBytes bounds the names of ConfigMaps in the history. Those that do not fit
// are found by their labels.
const maxHistoryBytes = 32 << 10

func bounded(history []v1alpha1.ExecutionSummary) []v1alpha1.ExecutionSummary {
	size := 0
	for i, h := range history {
		for _, name := range h.ResultsConfigMaps {
			size += len(name) + len(`"",`)
		}
		if size > maxHistoryBytes {
			history = slices.Clone(history)
			for j := i; j < len(history); j++ {
				history[j].ResultsConfigMaps = nil
			}
			return history
		}
	}
	return history
}

// prunable are the ConfigMaps that may be deleted: not those of the baseline.
func (n *next) prunable() []ResultMap {
	base := BaselineExecution(n.b, n.Status.History)
	if base == nil {
		return n.o.Maps
	}
	return slices.DeleteFunc(slices.Clone(n.o.Maps), func(m ResultMap) bool { return m.Execution == base.ID })
}

// reported reports whether the execution's report is there, or cannot be. A report of
// another generation tells of other thresholds.
func (n *next) reported() bool {
	if n.o.NoReport {
		return true
	}
	return slices.ContainsFunc(n.o.Maps, func(m ResultMap) bool {
		return m.Report && m.Execution == n.Status.Execution.ID && m.Generation == n.b.Generation
	})
}

// report orders the report, unless it is there.
func (n *next) report(failure string) (ordered bool) {
	if n.reported() {
		return false
	}
	n.Report = &ReportOrder{Completed: n.lastFinished(), Failure: failure}
	return true
}

// pass judges the thresholds once the execution has ended, and again where they have
// changed since.
func (n *next) pass() {
	before := meta.FindStatusCondition(n.b.Status.Conditions, v1alpha1.ConditionPassed)
	e := n.Status.Execution
	ended := e != nil && e.CompletionTime != nil
	known := n.b.Status.Execution
	if before != nil && ended && known != nil && known.ID == e.ID && known.CompletionTime != nil &&
		(before.ObservedGeneration == n.b.Generation || len(n.o.Results) < int(e.Completed+e.Failed)) {
		return
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionPassed, Status: metav1.ConditionUnknown,
		ObservedGeneration: n.b.Generation, LastTransitionTime: metav1.NewTime(n.now).Rfc3339Copy(),
	}
	switch {
	case len(n.b.Spec.Thresholds) == 0:
		c.Reason, c.Message = v1alpha1.ReasonNoThresholds, "spec.thresholds sets none"
	case !ended:
		c.Reason, c.Message = v1alpha1.ReasonNotJudged, "the execution has not ended"
	default:
		c.Status, c.Reason, c.Message = n.judgeThresholds()
	}
	meta.SetStatusCondition(&n.Status.Conditions, c)
}

// judgeThresholds holds all points against the thresholds, and writes the verdict of
// each into the status.
func (n *next) judgeThresholds() (metav1.ConditionStatus, string, string) {
	var all []results.Envelope
	for _, e := range n.o.Results {
		all = append(all, e)
	}
	points := results.Points(all, n.targets(), n.maxSpreadPercent())
	v := results.Judge(n.b.Spec.Thresholds, points, n.o.Baseline)
	verdicts := map[[2]string]string{}
	for _, p := range points {
		verdicts[[2]string{p.ID, p.Target}] = p.Verdict
	}
	for i, p := range n.Status.Points {
		n.Status.Points[i].Verdict = verdicts[[2]string{p.ID, p.Target}]
	}
	if v.NoBaseline > 0 && n.o.BaselineError != nil {
		v.NotJudged = append(v.NotJudged, fmt.Sprintf("%d thresholds refer to the baseline: %v", v.NoBaseline, n.o.BaselineError))
		v.NoBaseline = 0
	}
	if e := n.Status.Execution; e.Completed < e.Total {
		v.NotJudged = append(v.NotJudged, fmt.Sprintf("%d of %d runs did not succeed", e.Total-e.Completed, e.Total))
	}
	switch {
	case len(v.NotMet) > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonThresholdsNotMet, listed(v.NotMet)
	case len(v.NotJudged) > 0:
		return metav1.ConditionUnknown, v1alpha1.ReasonNotJudged, listed(v.NotJudged)
	}
	message := fmt.Sprintf("all %d thresholds are met", len(n.b.Spec.Thresholds))
	if v.NoBaseline > 0 {
		message = fmt.Sprintf("%d of %d thresholds are met; the others wait for a baseline, which this execution becomes",
			len(n.b.Spec.Thresholds)-v.NoBaseline, len(n.b.Spec.Thresholds))
	}
	return metav1.ConditionTrue, v1alpha1.ReasonThresholdsMet, message
}

// listed joins findings as long as a message has room, and counts the rest.
func listed(all []string) string {
	text := ""
	for i, finding := range all {
		if len(text)+len(finding) > maxMessage && i > 0 {
			return fmt.Sprintf("%s; and %d more", text, len(all)-i)
		}
		text = strings.TrimPrefix(text+"; "+shortened(finding), "; ")
	}
	return text
}

func (n *next) targets() (names []string) {
	for _, t := range n.b.Spec.Targets {
		names = append(names, t.Name)
	}
	return names
}

// passed is the verdict on record, nil where there is none.
func passed(s *v1alpha1.DBBenchmarkStatus) *bool {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionPassed)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return nil
	}
	return new(c.Status == metav1.ConditionTrue)
}
