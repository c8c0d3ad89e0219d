package plan

import "dbbench.dev/operator/api/v1alpha1"

// checkSupported refuses what the API has and this version does not do, so that
// nothing in a spec is ever ignored.
func checkSupported(spec *v1alpha1.DBBenchmarkSpec) error {
	for _, f := range []struct {
		path string
		used bool
		now  string
	}{
		{"spec.thresholds", len(spec.Thresholds) > 0, "leave them out"},
		{"spec.baseline", spec.Baseline != nil, "leave it out"},
	} {
		if f.used {
			return &SpecError{Reason: v1alpha1.ReasonNotSupported, Path: f.path, Message: "this version does not do that; " + f.now}
		}
	}
	return nil
}
