package controllers

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/results"
)

// knownBaseline is a baseline as it was read in this reconciliation.
type knownBaseline struct {
	baseline *results.Baseline
	missing  error
}

// baseline reads what spec.baseline names: nil where there is none yet. missing is why
// it cannot be had, for the user to mend; err is one that may pass.
func (s *scope) baseline(ctx context.Context) (b *results.Baseline, missing, err error) {
	if s.readBaseline == nil {
		b, missing, err := s.loadBaseline(ctx)
		if err != nil {
			return nil, nil, err
		}
		s.readBaseline = &knownBaseline{b, missing}
	}
	return s.readBaseline.baseline, s.readBaseline.missing, nil
}

// shardsOf are the names of the ConfigMaps with the results of an execution.
func (s *scope) shardsOf(execution string) (names []string) {
	if known := s.results.of(s.bench, plan.ExecutionID(s.bench)); known != nil {
		for _, m := range known.maps {
			if m.Execution == execution && !m.Report {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

func (s *scope) loadBaseline(ctx context.Context) (b *results.Baseline, missing, err error) {
	spec := s.bench.Spec.Baseline
	if spec == nil {
		return nil, nil, nil
	}
	var name string
	var shards []string
	if ref := spec.ConfigMapRef; ref != nil {
		name, shards = "the ConfigMap "+ref.Name, []string{ref.Name}
	} else if e := plan.BaselineExecution(s.bench, s.bench.Status.History); e != nil {
		name = fmt.Sprintf("execution %s of %s", e.ID, e.StartTime.UTC().Format("2006-01-02 15:04"))
		shards = s.shardsOf(e.ID)
	}
	if name == "" {
		return nil, nil, nil
	}
	all := map[string]string{}
	for _, shard := range shards {
		data, err := s.configMap(ctx, shard)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("the ConfigMap %s is not there", shard), nil
		case err != nil:
			return nil, nil, err
		}
		maps.Copy(all, data)
	}
	b, missing = results.ReadBaseline(name, all)
	return b, missing, nil
}
