package report

import (
	"fmt"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

func newDocument(in Input) results.Document {
	targets := targetNames(in.Spec)
	points := results.Points(in.Runs, targets, maxSpreadPercent(in.Spec))
	d := results.Document{
		Version: results.SummaryVersion, Benchmark: in.Name, Namespace: in.Namespace, Execution: in.Execution,
		Workload: in.Workload, Started: in.Started, Completed: in.Completed, Failure: in.Failure,
		Environments: results.Environments(in.Runs, targets),
	}
	if len(in.Spec.Thresholds) > 0 {
		v := results.Judge(in.Spec.Thresholds, points, in.Baseline)
		d.Thresholds = &v
	}
	d.Points = append([]results.Point{}, points...) // [] rather than null in JSON
	d.Differences = results.Differences(d.Environments)
	d.Comparisons = results.CompareTargets(points, targets)
	if in.Baseline != nil {
		d.Baseline = in.Baseline.Name
		compared, missing := results.CompareBaseline(points, in.Baseline)
		d.Comparisons = append(d.Comparisons, compared...)
		if missing > 0 {
			d.Warnings = append(d.Warnings, fmt.Sprintf("%d of %d points are not in the baseline and are not compared with it", missing, len(points)))
		}
	}
	d.Warnings = append(d.Warnings, warningsOf(in, d)...)
	return d
}

// warningsOf are those about the execution as a whole.
func warningsOf(in Input, d results.Document) (all []string) {
	failed := 0
	for _, p := range d.Points {
		failed += int(p.Failed)
	}
	if failed > 0 {
		all = append(all, fmt.Sprintf("%d runs failed; their points rest on fewer iterations, or on none", failed))
	}
	for _, e := range d.Environments {
		if e.Changed {
			all = append(all, fmt.Sprintf("the configuration of the server %s changed during the execution", e.Target))
		}
	}
	few := 0
	for _, c := range d.Comparisons {
		if c.Verdict == results.TooFew {
			few++
		}
	}
	if few > 0 {
		all = append(all, fmt.Sprintf("%d comparisons rest on too few iterations for a p-value below 0.05; 4 iterations on each side are the least", few))
	}
	if in.Spec.Load.Rate == nil {
		all = append(all, "closed loop: a client that waits sends nothing, so the latencies do not show how long requests would have queued while the server stalled (coordinated omission); set spec.load.rate to see that")
	}
	return all
}

func targetNames(spec v1alpha1.DBBenchmarkSpec) (names []string) {
	for _, t := range spec.Targets {
		names = append(names, t.Name)
	}
	return names
}

func maxSpreadPercent(spec v1alpha1.DBBenchmarkSpec) int32 {
	const standard = 10
	if p := spec.MaxSpreadPercent; p != nil {
		return *p
	}
	return standard
}
