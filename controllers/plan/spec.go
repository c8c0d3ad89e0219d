package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"dbbench.dev/operator/api/v1alpha1"
)

// Default sets the defaults of a spec that has not been through an API server.
func Default(spec *v1alpha1.DBBenchmarkSpec) error {
	tree, err := toTree(spec)
	if err != nil {
		return err
	}
	var defaulted v1alpha1.DBBenchmarkSpec
	if err := decodeStrictly(tree, &defaulted); err != nil {
		return invalid("spec", "%v", err)
	}
	defaulted.Sweep = spec.Sweep // it has no defaults, and its values stay as they were written
	*spec = defaulted
	return nil
}

// Admit does with a spec, as JSON, what an API server does with it: it sets the
// defaults and checks everything that the schema says, and is strict about fields that
// it does not know. Each fault is a *SpecError; all are joined.
//
// It is for programs without a cluster. Read into Go's types first, a spec would have
// lost the difference between a field that is 0 and one that is left out.
func Admit(spec map[string]any) error {
	if spec == nil {
		return invalid("spec", "it is missing")
	}
	var faults []error
	for _, path := range specSchema().dropUnknown(spec) {
		faults = append(faults, invalid(path, "unknown field; see docs/api.md for those there are"))
	}
	specSchema().setDefaults(spec)
	for _, fault := range specSchema().validate(spec) {
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

// complete is a valid spec with its defaults, and the same as JSON less the sweep: the
// tree in which the sweep's values are set.
func complete(spec *v1alpha1.DBBenchmarkSpec) (*v1alpha1.DBBenchmarkSpec, map[string]any, error) {
	spec = spec.DeepCopy()
	if err := Default(spec); err != nil {
		return nil, nil, err
	}
	tree, err := toTree(spec)
	if err != nil {
		return nil, nil, err
	}
	if faults := specSchema().validate(tree); len(faults) > 0 {
		return nil, nil, faults[0]
	}
	delete(tree, "sweep")
	return spec, tree, nil
}

// toTree is a spec as JSON, with defaults, whole numbers as int64.
func toTree(spec *v1alpha1.DBBenchmarkSpec) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, invalid("spec", "%v", err)
	}
	specSchema().setDefaults(tree)
	return tree, nil
}

// decode reads the part of a tree that a sweep varies.
func decode(tree map[string]any) (workload v1alpha1.Workload, load v1alpha1.Load, err error) {
	return workload, load, errors.Join(
		decodeStrictly(tree["workload"], &workload),
		decodeStrictly(tree["load"], &load),
	)
}

func decodeStrictly(tree, into any) error {
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// PrepareMode is when a spec has its data loaded: as it says, or as its workload is
// used to.
func PrepareMode(spec *v1alpha1.DBBenchmarkSpec) v1alpha1.Prepare {
	switch {
	case spec.Prepare != "":
		return spec.Prepare
	case spec.Workload.OLTP != nil, spec.Workload.LinkBench != nil:
		return v1alpha1.PreparePerDataset
	}
	return v1alpha1.PreparePerRun
}

// RunTimeout is the time that a run may take.
func RunTimeout(spec *v1alpha1.DBBenchmarkSpec) time.Duration {
	if spec.RunTimeout == nil {
		return time.Hour
	}
	return spec.RunTimeout.Duration
}

// JoinTimeout is how long the pods of a run wait for each other: scheduling and image
// pulls have to fit in.
func JoinTimeout(spec *v1alpha1.DBBenchmarkSpec) time.Duration {
	return min(2*time.Minute, RunTimeout(spec))
}

// startLimit is how long a pod that does not start is waited for. Of several it is a
// little less than they wait for each other: they know who is missing, but not why.
func startLimit(spec *v1alpha1.DBBenchmarkSpec) time.Duration {
	const ahead = 10 * time.Second
	if spec.Runner.Replicas > 1 {
		return max(JoinTimeout(spec)-ahead, ahead/2)
	}
	return RunTimeout(spec)
}

// WorkloadName is a workload in a word, such as slap/Write.
func WorkloadName(w v1alpha1.Workload) string {
	switch {
	case w.Slap != nil:
		return "slap/" + string(w.Slap.LoadType)
	case w.OLTP != nil:
		return "oltp/" + string(w.OLTP.Script)
	case w.LinkBench != nil:
		return "linkbench"
	case w.Payload != nil:
		return "payload/" + string(w.Payload.Operation)
	case w.SQL != nil:
		return "sql"
	}
	return ""
}
