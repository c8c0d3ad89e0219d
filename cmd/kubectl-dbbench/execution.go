package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/results/report"
)

// previous stands for the execution before the current one.
const previous = "previous"

// reference names an execution: NAME is the current one of a benchmark, NAME@ID another,
// NAME@previous the one before the current.
type reference struct{ name, execution string }

func parseReference(text string) reference {
	name, execution, _ := strings.Cut(text, "@")
	return reference{name, execution}
}

func (r reference) String() string {
	if r.execution == "" {
		return r.name
	}
	return r.name + "@" + r.execution
}

// result is an execution and where its full records come from.
type result struct {
	benchmark *v1alpha1.DBBenchmark
	reason    string // how it ended, or how far it is
	input     func() (report.Input, error)
}

// find finds an execution. Of one that is not the current, the points are read from its
// records into the status.
func (e *env) find(ctx context.Context, r reference) (result, error) {
	c, err := e.connect()
	if err != nil {
		return result{}, err
	}
	b := &v1alpha1.DBBenchmark{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: r.name}, b); err != nil {
		return result{}, err
	}
	found := e.resultOf(ctx, c, b, r.execution)
	if r.execution == "" {
		return found, nil
	}
	in, err := found.input()
	if err != nil {
		return result{}, err
	}
	summary := results.Summarise(in.Runs, targetNames(in.Spec), spreadOf(in.Spec))
	b.Status.Points, b.Status.PointsTruncated = summary.Points, summary.Truncated
	reason := found.reason
	if i := slices.IndexFunc(b.Status.History, func(h v1alpha1.ExecutionSummary) bool { return h.ID == in.Execution }); i >= 0 {
		reason = b.Status.History[i].Reason
	}
	return result{b, reason, func() (report.Input, error) { return in, nil }}, nil
}

// resultOf is an execution of a benchmark that was read.
func (e *env) resultOf(ctx context.Context, c *cluster, b *v1alpha1.DBBenchmark, execution string) result {
	return result{b, stateOf(b, "").reason, func() (report.Input, error) {
		in, err := inputOf(b, execution)
		if err != nil {
			return in, err
		}
		if in.Runs, err = c.runs(ctx, b, in.Execution); err != nil {
			return in, err
		}
		if len(in.Runs) == 0 {
			return in, fmt.Errorf("%s: there are no ConfigMaps with results of execution %s", b.Name, in.Execution)
		}
		if in.Baseline, err = c.baseline(ctx, b); err != nil {
			fmt.Fprintf(e.ErrOut, "warning: no comparison with the baseline: %v\n", err)
		}
		return in, nil
	}}
}

// spreadOf is the spread of throughput above which a point is called unstable.
func spreadOf(spec v1alpha1.DBBenchmarkSpec) int32 {
	const standard = 10
	if p := spec.MaxSpreadPercent; p != nil {
		return *p
	}
	return standard
}

// baseline is what a benchmark's current execution is compared with, nil for nothing.
func (c *cluster) baseline(ctx context.Context, b *v1alpha1.DBBenchmark) (*results.Baseline, error) {
	switch of := b.Spec.Baseline; {
	case of == nil:
		return nil, nil
	case of.ConfigMapRef != nil:
		var cm corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: of.ConfigMapRef.Name}, &cm); err != nil {
			return nil, err
		}
		return results.ReadBaseline(cm.Name, cm.Data)
	}
	e := plan.BaselineExecution(b, b.Status.History)
	if e == nil {
		return nil, nil
	}
	runs, err := c.runs(ctx, b, e.ID)
	if err != nil {
		return nil, err
	}
	return results.NewBaseline("execution "+e.ID, results.Points(runs, targetNames(b.Spec), 0)), nil
}

// inputOf is what the resource itself says of one of its executions.
func inputOf(b *v1alpha1.DBBenchmark, execution string) (report.Input, error) {
	in := report.Input{Name: b.Name, Namespace: b.Namespace, Workload: plan.WorkloadName(b.Spec.Workload), Spec: b.Spec}
	if execution == previous {
		if len(b.Status.History) == 0 {
			return in, fmt.Errorf("%s has no earlier execution", b.Name)
		}
		execution = b.Status.History[0].ID
	}
	if e := b.Status.Execution; e != nil && (execution == "" || execution == e.ID) {
		in.Execution, in.Started = e.ID, e.StartTime.Time
		if e.CompletionTime != nil {
			in.Completed = e.CompletionTime.Time
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
			in.Failure = c.Reason + ": " + c.Message
		}
		return in, nil
	}
	if execution == "" {
		return in, fmt.Errorf("%s has not been run yet", b.Name)
	}
	i := slices.IndexFunc(b.Status.History, func(h v1alpha1.ExecutionSummary) bool { return h.ID == execution })
	if i < 0 {
		return in, fmt.Errorf("%s has no execution %s; it has %s", b.Name, execution, strings.Join(executions(b), ", "))
	}
	h := b.Status.History[i]
	in.Execution, in.Started = h.ID, h.StartTime.Time
	if h.CompletionTime != nil {
		in.Completed = h.CompletionTime.Time
	}
	if h.Reason != v1alpha1.ReasonComplete {
		in.Failure = h.Reason
	}
	return in, nil
}

// executions are the ids of those that a benchmark knows, newest first.
func executions(b *v1alpha1.DBBenchmark) []string {
	var ids []string
	if e := b.Status.Execution; e != nil {
		ids = append(ids, e.ID)
	}
	for _, h := range b.Status.History {
		ids = append(ids, h.ID)
	}
	if len(ids) == 0 {
		return []string{"none"}
	}
	return ids
}

// runs reads the results of an execution.
func (c *cluster) runs(ctx context.Context, b *v1alpha1.DBBenchmark, execution string) ([]results.Envelope, error) {
	var list corev1.ConfigMapList
	err := c.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabels{
		resources.LabelUID: string(b.UID), resources.LabelPurpose: resources.PurposeResults, resources.LabelExecution: execution,
	})
	if err != nil {
		return nil, err
	}
	var runs []results.Envelope
	var faults []error
	for _, cm := range list.Items {
		for key, text := range cm.Data {
			e, err := results.Decode(key, text)
			if err != nil {
				faults = append(faults, fmt.Errorf("ConfigMap %s: %w", cm.Name, err))
				continue
			}
			runs = append(runs, e)
		}
	}
	slices.SortFunc(runs, func(a, b results.Envelope) int { return a.Finished.Compare(b.Finished) })
	return runs, errors.Join(faults...)
}
