package controllers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// The runs of these tests make 100 events a second.

func judged(w *world, b *v1alpha1.DBBenchmark, status metav1.ConditionStatus, says string) {
	w.Helper()
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionPassed)
	if c == nil || c.Status != status || !strings.Contains(c.Message, says) {
		w.Errorf("Passed: %+v, want %s: %q", c, status, says)
	}
}

func atLeast(n string) v1alpha1.Threshold {
	return v1alpha1.Threshold{Metric: results.MetricThroughput, Min: n}
}

// report reads the report of the current execution.
func (w *world) report(b *v1alpha1.DBBenchmark) *corev1.ConfigMap {
	w.Helper()
	var cm corev1.ConfigMap
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: b.Namespace, Name: b.Status.ReportConfigMap}, &cm); err != nil {
		w.Fatalf("report %q: %v", b.Status.ReportConfigMap, err)
	}
	return &cm
}

// TestPassed takes a benchmark through verdicts: met, not met after a change of the
// thresholds alone, which runs nothing again, and met by another execution against the
// one that passed before.
func TestPassed(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	key := w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Thresholds = []v1alpha1.Threshold{atLeast("50")} }))
	b := w.complete(key, 3)
	judged(w, b, metav1.ConditionTrue, "all 1 thresholds are met")
	first := b.Status.Execution.ID
	report := w.report(b)
	for _, k := range []string{results.HTMLKey, results.SummaryKey, results.CSVKey, results.BenchstatKey} {
		if report.Data[k] == "" {
			t.Errorf("the report has no %s", k)
		}
	}
	if !metav1.IsControlledBy(report, b) || !strings.Contains(report.Data[results.HTMLKey], ">Passed<") {
		t.Errorf("the report of %s: %+v", b.Name, report.ObjectMeta)
	}

	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Thresholds = []v1alpha1.Threshold{atLeast("150")} })
	b = w.complete(key, 3)
	judged(w, b, metav1.ConditionFalse, "throughput of mariadb is 100.0 events/s, less than 150")
	w.eventually("an event tells of it", func() bool {
		var list eventsv1.EventList
		if err := w.List(t.Context(), &list, client.InNamespace(b.Namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == v1alpha1.ReasonThresholdsNotMet })
	})
	if b.Status.Execution.ID != first || b.Status.Points[0].Verdict != results.VerdictFailed {
		t.Errorf("execution %s, point %+v", b.Status.Execution.ID, b.Status.Points[0])
	}
	if html := w.report(b).Data[results.HTMLKey]; !strings.Contains(html, "less than 150") {
		t.Error("the report does not tell of the new threshold")
	}

	w.change(key, func(b *v1alpha1.DBBenchmark) {
		b.Spec.Thresholds = []v1alpha1.Threshold{atLeast("50"), {Metric: results.MetricThroughput, MinRatio: "0.95", To: "Baseline"}}
		b.Spec.Baseline = &v1alpha1.Baseline{Previous: true}
	})
	b = w.complete(key, 3)
	judged(w, b, metav1.ConditionTrue, "1 of 2 thresholds are met; the others wait for a baseline")
	// Another execution, in which the server is slower by half.
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			return ending{log: record(s, func(r *contract.Record) { r.Result.ElapsedNanos *= 2 })}
		}
	})
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Load.Clients = 3 })
	b = w.complete(key, 3)
	judged(w, b, metav1.ConditionFalse, "with Baseline of 100.0 events/s a ratio of 0.500, less than 0.95")
	if h := b.Status.History; len(h) != 1 || h[0].ID != first || h[0].Passed == nil || !*h[0].Passed || h[0].ReportConfigMap == "" {
		t.Errorf("history: %+v", h)
	}
	if text := w.report(b).Data[results.SummaryKey]; !strings.Contains(text, "execution "+first) || !strings.Contains(text, `"against": "Baseline"`) {
		t.Error("the report does not compare with the execution before")
	}
}

// TestBaselineFromConfigMap: a report that was kept, as in Git, is a baseline; one that
// is not there leaves the thresholds without a verdict, and fails nothing.
func TestBaselineFromConfigMap(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	earlier := w.complete(w.create(w.bench("earlier")), 3)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: earlier.Namespace, Name: "kept"}}
	kept.Data = map[string]string{results.SummaryKey: w.report(earlier).Data[results.SummaryKey]}
	if err := w.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	ratio := v1alpha1.Threshold{Metric: results.MetricLatencyP99, MaxRatio: "1.05", To: "Baseline"}
	with := func(name string) func(*v1alpha1.DBBenchmark) {
		return func(b *v1alpha1.DBBenchmark) {
			b.Spec.Thresholds = []v1alpha1.Threshold{ratio}
			b.Spec.Baseline = &v1alpha1.Baseline{ConfigMapRef: &corev1.LocalObjectReference{Name: name}}
		}
	}
	judged(w, w.complete(w.create(w.bench("compared", with("kept"))), 3), metav1.ConditionTrue, "all 1 thresholds are met")
	judged(w, w.complete(w.create(w.bench("lost", with("nowhere"))), 3), metav1.ConditionUnknown, "the ConfigMap nowhere is not there")
	results := w.bench("of-results", with(earlier.Status.ResultsConfigMaps[0]))
	judged(w, w.complete(w.create(results), 3), metav1.ConditionTrue, "all 1 thresholds are met")
}

// TestReportRefused: where the API has no room for a report, the execution ends without.
func TestReportRefused(t *testing.T) {
	w := newWorld(t, 1)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("exceeded quota"))
	stored := false
	w.start(func(kind string) error {
		if kind != "create *v1.ConfigMap" {
			return nil
		}
		if !stored { // the results
			stored = true
			return nil
		}
		return forbidden
	}, nil)
	b := w.complete(w.create(w.bench("bench")), 3)
	if b.Status.ReportConfigMap != "" {
		t.Errorf("report %q", b.Status.ReportConfigMap)
	}
	var list corev1.ConfigMapList
	if err := w.List(t.Context(), &list, client.InNamespace(b.Namespace), client.MatchingLabels{resources.LabelPurpose: resources.PurposeReport}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d reports, error %v", len(list.Items), err)
	}
}
