package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// measured has the runs r1 to r3 stored with so many events in a second and as many
// errors as are given.
func measured(events int64, failed ...int64) func(*situation) {
	return func(s *situation) {
		for i, run := range []string{"r1", "r2", "r3"} {
			done(run)(s)
			e := s.o.Results[run]
			r := contract.Result{Outcome: contract.OutcomeSucceeded, Events: events, Attempts: events, ElapsedNanos: int64(time.Second)}
			if i < len(failed) {
				r.Errors = failed[i]
			}
			e.Records = []contract.Record{{Result: r}}
			s.o.Results[run] = e
		}
	}
}

func threshold(t ...v1alpha1.Threshold) func(*situation) {
	return func(s *situation) { s.b.Spec.Thresholds = t }
}

func against(b v1alpha1.Baseline, known *results.Baseline, err error) func(*situation) {
	return func(s *situation) { s.b.Spec.Baseline, s.o.Baseline, s.o.BaselineError = &b, known, err }
}

func TestPassed(t *testing.T) {
	atLeast := func(n int) v1alpha1.Threshold {
		return v1alpha1.Threshold{Metric: results.MetricThroughput, Min: fmt.Sprint(n)}
	}
	ratio := v1alpha1.Threshold{Metric: results.MetricThroughput, MinRatio: "0.95", To: "Baseline"}
	previous := v1alpha1.Baseline{Previous: true}
	var before []results.Point
	for _, run := range []string{"r1", "r2", "r3"} {
		p := results.Points([]results.Envelope{{Run: run, Point: "p-" + run, Target: "m",
			Records: []contract.Record{{Result: contract.Result{Events: 200, ElapsedNanos: int64(time.Second)}}}}}, nil, 10)
		before = append(before, p...)
	}
	for _, tc := range []struct {
		name   string
		change []func(*situation)
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		{"no thresholds", []func(*situation){measured(100)}, "Unknown", "NoThresholds", ""},
		{"under way", []func(*situation){done("r1"), threshold(atLeast(50))}, "Unknown", "NotJudged", "has not ended"},
		{"met", []func(*situation){measured(100), threshold(atLeast(50))}, "True", "ThresholdsMet", "all 1 thresholds are met"},
		{"not met", []func(*situation){measured(100), threshold(atLeast(50), atLeast(150))}, "False", "ThresholdsNotMet", "throughput of m is 100.0 events/s, less than 150"},
		{"one of three points", []func(*situation){measured(100, 0, 2), threshold(v1alpha1.Threshold{Metric: results.MetricErrors, Max: "0"})},
			"False", "ThresholdsNotMet", "errors of m is 2, more than 0"},
		{"a failed run", []func(*situation){measured(100), failing("r3", "WorkloadFailed"), threshold(atLeast(50))}, "Unknown", "NotJudged", "1 of 3 runs did not succeed"},
		{"a failed run, and not met", []func(*situation){measured(100), failing("r3", "WorkloadFailed"), threshold(atLeast(150))}, "False", "ThresholdsNotMet", "less than 150"},
		{"the first execution", []func(*situation){measured(100), threshold(atLeast(50), ratio), against(previous, nil, nil)},
			"True", "ThresholdsMet", "1 of 2 thresholds are met; the others wait for a baseline"},
		{"slower than the baseline", []func(*situation){measured(180), threshold(ratio), against(previous, results.NewBaseline("x", before), nil)},
			"False", "ThresholdsNotMet", "a ratio of 0.900, less than 0.95"},
		{"like the baseline", []func(*situation){measured(195), threshold(ratio), against(previous, results.NewBaseline("x", before), nil)}, "True", "ThresholdsMet", ""},
		{"the baseline is gone", []func(*situation){measured(100), threshold(ratio), against(previous, nil, errors.New("the ConfigMap x is not there"))},
			"Unknown", "NotJudged", "1 thresholds refer to the baseline: the ConfigMap x is not there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSituation(tc.change...)
			d := Next(t0.Add(time.Hour), s.b, s.o)
			c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionPassed)
			if c.Status != tc.status || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
		})
	}
}

// TestPassedStays: an execution that has ended is judged once, and again where the
// thresholds change.
func TestPassedStays(t *testing.T) {
	s := newSituation(measured(100), threshold(v1alpha1.Threshold{Metric: results.MetricThroughput, Min: "50"}))
	next := func() *metav1.Condition {
		s.b.Status = Next(t0.Add(time.Hour), s.b, s.o).Status
		return meta.FindStatusCondition(s.b.Status.Conditions, v1alpha1.ConditionPassed)
	}
	if c := next(); c.Status != "True" || s.b.Status.Points[0].Verdict != "Passed" {
		t.Fatalf("%+v", c)
	}
	s.o.Results = nil // somebody has deleted them
	if c := next(); c.Status != "True" || len(s.b.Status.Points) != 3 || s.b.Status.Points[0].Verdict != "Passed" {
		t.Errorf("without results: %+v", c)
	}
	s.o.Results = map[string]results.Envelope{}
	measured(100)(s)
	s.b.Generation, s.b.Spec.Thresholds[0].Min = 2, "150"
	if c := next(); c.Status != "False" || s.b.Status.Points[0].Verdict != "Failed" || s.b.Status.Execution.CompletionTime == nil {
		t.Errorf("with another threshold: %+v", c)
	}
}

// TestPassedIsBounded: thousands of points that fail make a message that can be read.
func TestPassedIsBounded(t *testing.T) {
	var all []string
	for i := range 4000 {
		all = append(all, fmt.Sprintf("throughput of m at clients=%d is too low", i))
	}
	if text := listed(all); len(text) > 2*maxMessage || !strings.Contains(text, "; and 39") {
		t.Errorf("%d bytes: …%s", len(text), text[max(0, len(text)-100):])
	}
	if text := listed([]string{strings.Repeat("x", 5000)}); len(text) > 2*maxMessage {
		t.Errorf("%d bytes", len(text))
	}
}

// TestReport: the report is written before the execution is said to have ended, once for
// each generation, and what cannot be written does not hold it up.
func TestReport(t *testing.T) {
	s := newSituation(measured(100), func(s *situation) { s.o.NoReport = false })
	d := Next(t0.Add(time.Hour), s.b, s.o)
	if d.Report == nil || !d.Acts() || d.Report.Failure != "" || d.Status.Execution.CompletionTime != nil {
		t.Fatalf("report %+v, execution %+v", d.Report, d.Status.Execution)
	}
	refused := *s
	refused.o.NoReport = true
	if d := Next(t0.Add(time.Hour), refused.b, refused.o); d.Report != nil || d.Status.Execution.CompletionTime == nil {
		t.Errorf("it cannot be written: %+v", d.Report)
	}
	s.o.Maps = []ResultMap{
		{Name: "bench-results", Execution: s.b.Status.Execution.ID},
		{Name: "bench-report", Execution: s.b.Status.Execution.ID, Report: true, Generation: 1},
	}
	d = Next(t0.Add(time.Hour), s.b, s.o)
	if d.Acts() || d.Status.Execution.CompletionTime == nil || d.Status.ReportConfigMap != "bench-report" || len(d.Status.ResultsConfigMaps) != 1 {
		t.Errorf("it is there: %+v", d.Status)
	}
	s.b.Status = d.Status
	s.b.Generation, s.b.Spec.Thresholds = 2, []v1alpha1.Threshold{{Metric: results.MetricThroughput, Min: "1"}}
	if d := Next(t0.Add(time.Hour), s.b, s.o); d.Report == nil {
		t.Error("other thresholds, but no other report")
	}
	s.o.Results = nil
	if d := Next(t0.Add(time.Hour), s.b, s.o); d.Report != nil {
		t.Error("a report of nothing")
	}
	failed := newSituation(failing("r1", "WorkloadFailed"), func(s *situation) { s.o.NoReport = false })
	if d := Next(t0.Add(time.Hour), failed.b, failed.o); d.Report == nil || !strings.Contains(d.Report.Failure, "WorkloadFailed: the run r1 failed: it broke") {
		t.Errorf("of a failed execution: %+v", d.Report)
	}
}

// TestHistoryIsBounded: a hundred executions of the largest sweep fit into a status.
func TestHistoryIsBounded(t *testing.T) {
	s := newSituation(func(s *situation) {
		s.b.Spec.HistoryLimit = new(int32(100))
		for i := range 99 {
			h := v1alpha1.ExecutionSummary{ID: fmt.Sprintf("%08x", i), Reason: "Complete"}
			for shard := range 100 {
				h.ResultsConfigMaps = append(h.ResultsConfigMaps, fmt.Sprintf("%s-results-%s-%d", strings.Repeat("n", 63), h.ID, shard))
			}
			s.b.Status.History = append(s.b.Status.History, h)
		}
	})
	d := Next(t0, s.b, s.o)
	text, err := json.Marshal(d.Status)
	if err != nil || len(text) > 90<<10 || len(d.Status.History) != 99 || len(d.Status.History[0].ResultsConfigMaps) != 100 {
		t.Errorf("%d bytes, error %v", len(text), err)
	}
}

// TestBaselineIsKept: the history's limit takes nothing away that is compared with.
func TestBaselineIsKept(t *testing.T) {
	s := newSituation(func(s *situation) {
		s.b.Spec.HistoryLimit = new(int32(2))
		s.b.Spec.Baseline = &v1alpha1.Baseline{Previous: true}
		for _, h := range []struct {
			id     string
			reason string
			passed *bool
		}{{"e4", "WorkloadFailed", nil}, {"e3", "Complete", new(false)}, {"e2", "Complete", new(true)}, {"e1", "Complete", new(true)}} {
			s.b.Status.History = append(s.b.Status.History, v1alpha1.ExecutionSummary{ID: h.id, Reason: h.reason, Passed: h.passed})
		}
		for i, e := range []string{"e1", "e2", "e3", "e4"} {
			s.o.Maps = append(s.o.Maps, ResultMap{Name: e + "-results", Execution: e, Created: t0.Add(time.Duration(i) * time.Minute)})
		}
	})
	d := Next(t0.Add(time.Hour), s.b, s.o)
	if !slices.Equal(d.DeleteMaps, []string{"e1-results", "e3-results"}) {
		t.Errorf("deleted: %v", d.DeleteMaps)
	}
	var kept []string
	for _, h := range d.Status.History {
		kept = append(kept, h.ID)
	}
	if !slices.Equal(kept, []string{"e4", "e2"}) {
		t.Errorf("kept: %v", kept)
	}
	if base := BaselineExecution(s.b, d.Status.History); base == nil || base.ID != "e2" {
		t.Errorf("baseline: %+v", base)
	}
}
