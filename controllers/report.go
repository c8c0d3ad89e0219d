package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/results/report"
)

// writeReport makes the report of the execution, or writes it anew. That it cannot be
// had ends nothing: the results are there.
func (s *scope) writeReport(ctx context.Context, order plan.ReportOrder) error {
	runs, err := s.fullResults(ctx)
	if err != nil {
		return err
	}
	baseline, _, err := s.baseline(ctx)
	if err != nil {
		return err
	}
	files, err := report.Build(s.reportInput(order, runs, baseline))
	if err != nil {
		s.refuseReport(err)
		return nil
	}
	cm := resources.Report(s.bench, s.bench.Status.Execution.ID)
	cm.Annotations = map[string]string{resources.AnnotationGeneration: strconv.FormatInt(s.bench.Generation, 10)}
	cm.Data = files.Data()
	err = s.Client.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		err = s.replaceReport(ctx, cm)
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		s.refuseReport(err)
		return nil
	}
	return err
}

func (s *scope) refuseReport(err error) {
	s.noReport = true
	s.warn("ReportFailed", "Report", "there is no report of this execution; its results are in status.resultsConfigMaps: %v", err)
}

func (s *scope) replaceReport(ctx context.Context, cm *corev1.ConfigMap) error {
	var there corev1.ConfigMap
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(cm), &there); err != nil {
		return err
	}
	if !metav1.IsControlledBy(&there, s.bench) {
		s.refuseReport(fmt.Errorf("a ConfigMap named %s is there that is not this benchmark's", cm.Name))
		return nil
	}
	before := there.DeepCopy()
	there.Annotations, there.Data = cm.Annotations, cm.Data
	return s.Client.Patch(ctx, &there, client.MergeFrom(before))
}

func (s *scope) reportInput(order plan.ReportOrder, runs []results.Envelope, baseline *results.Baseline) report.Input {
	b := s.bench
	return report.Input{
		Name: b.Name, Namespace: b.Namespace, Execution: b.Status.Execution.ID, Workload: plan.WorkloadName(b.Spec.Workload),
		Started: b.Status.Execution.StartTime.Time, Completed: order.Completed, Failure: order.Failure,
		Spec: b.Spec, Runs: runs, Baseline: baseline, Limit: maxShard,
	}
}

// maxSeries bounds the intervals of time series that are held for a report; a run of
// minutes has 300.
const maxSeries = 200_000

// fullResults reads the results of the execution with all that the cache leaves out, the
// time series as far as there is room for them.
func (s *scope) fullResults(ctx context.Context) (all []results.Envelope, err error) {
	known := s.results.of(s.bench, plan.ExecutionID(s.bench))
	if known == nil {
		return nil, fmt.Errorf("the results of %s are not known", s.bench.Name)
	}
	series := 0
	for _, sh := range known.shards {
		data, err := s.configMap(ctx, sh.name)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			e, err := results.Decode(key, data[key])
			if err != nil {
				continue // told of when the shard was read first
			}
			for _, r := range e.Records {
				series += len(r.Series)
			}
			if series > maxSeries {
				e = e.Trimmed()
			}
			all = append(all, e)
		}
	}
	return all, nil
}

func (s *scope) configMap(ctx context.Context, name string) (map[string]string, error) {
	var cm corev1.ConfigMap
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.bench.Namespace, Name: name}, &cm)
	return cm.Data, err
}
