package plan

import (
	"fmt"

	"dbbench.dev/operator/api/v1alpha1"
)

// checkSupported refuses what the API has and this version does not do, so that
// nothing in a spec is ever ignored.
func checkSupported(spec *v1alpha1.DBBenchmarkSpec) error {
	load := spec.Load
	for _, f := range []struct {
		path string
		used bool
		now  string
	}{
		{"spec.load.rate", load.Rate != nil, "leave it out: each client sends as soon as it can"},
		{"spec.load.arrivals", load.Arrivals != "", "leave it out"},
		{"spec.load.thinkTime", load.ThinkTime != nil && load.ThinkTime.Duration > 0, "leave it out"},
		{"spec.load.ramp", len(load.Ramp) > 0, "leave it out"},
		{"spec.thresholds", len(spec.Thresholds) > 0, "leave them out"},
		{"spec.baseline", spec.Baseline != nil, "leave it out"},
	} {
		if f.used {
			return &SpecError{Reason: v1alpha1.ReasonNotSupported, Path: f.path, Message: "this version does not do that; " + f.now}
		}
	}
	return sweptFields(spec)
}

// sweptFields refuses axes over fields that are not supported.
func sweptFields(spec *v1alpha1.DBBenchmarkSpec) error {
	if spec.Sweep == nil {
		return nil
	}
	for i, a := range spec.Sweep.Axes {
		switch a.Path {
		case "load.rate", "load.arrivals", "load.thinkTime":
			return &SpecError{Reason: v1alpha1.ReasonNotSupported, Path: fmt.Sprintf("spec.sweep.axes[%d].path", i), Message: a.Path + ": this version does not do that; sweep another field"}
		}
	}
	return nil
}
