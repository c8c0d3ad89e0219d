package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"dbbench.dev/operator/api/v1alpha1"
)

const (
	// MaxPoints is the greatest number of points that the axes of a sweep may span.
	MaxPoints = 4096
	// MaxRuns is the greatest number of runs: points × targets × iterations.
	MaxRuns = 65536
)

// Expand turns a spec into its runs in the order in which they are done. The same
// spec always gives the same runs. A spec that cannot be run gives a *SpecError.
//
// Each point is held to all that admission holds a spec to, at about half a
// millisecond a point: keep the result as long as the spec stays the same.
func Expand(spec *v1alpha1.DBBenchmarkSpec) ([]Run, error) {
	spec, tree, err := complete(spec)
	if err != nil {
		return nil, err
	}
	axes, err := readAxes(tree, spec.Sweep)
	if err != nil {
		return nil, err
	}
	if err := checkThresholds(spec.Thresholds, axes); err != nil {
		return nil, err
	}
	if err := checkSchedule(spec.Schedule); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkTargets(spec.Targets), checkStatements(spec.Workload.SQL), checkPrepare(spec)); err != nil {
		return nil, err
	}
	points, err := expandPoints(tree, axes, spec.Sweep)
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		if err := checkShares(spec.Runner.Replicas, p); err != nil {
			return nil, err
		}
	}
	if PrepareMode(spec) == v1alpha1.PreparePerDataset {
		findDatasets(points)
	}
	if len(points)*len(spec.Targets)*int(spec.Iterations) > MaxRuns {
		return nil, invalid("spec.iterations", "%d points, %d targets and %d iterations make more than %d runs; take some away",
			len(points), len(spec.Targets), spec.Iterations, MaxRuns)
	}
	return order(spec, points), nil
}

// point is a combination of the axes' values, on any target.
type point struct {
	id string
	// dataset names the data that the point shares with others, where it shares any.
	dataset    string
	parameters v1alpha1.Parameters
	workload   v1alpha1.Workload
	load       v1alpha1.Load
}

// order lists the runs of the points: those of one dataset after those of another, so
// that each is loaded once.
func order(spec *v1alpha1.DBBenchmarkSpec, points []point) []Run {
	runs := make([]Run, 0, len(points)*len(spec.Targets)*int(spec.Iterations))
	for _, group := range groupByDataset(points) {
		runs = appendRuns(runs, spec, group)
	}
	return runs
}

// appendRuns lists the runs of the points of a dataset. RoundRobin alternates points and
// targets, so that what drifts in the servers or the node hits all of them alike.
func appendRuns(runs []Run, spec *v1alpha1.DBBenchmarkSpec, points []point) []Run {
	if spec.Order == v1alpha1.OrderSequential {
		for _, p := range points {
			for _, t := range spec.Targets {
				for i := range spec.Iterations {
					runs = append(runs, newRun(p, t.Name, i+1))
				}
			}
		}
		return runs
	}
	for i := range spec.Iterations {
		for _, p := range points {
			for _, t := range spec.Targets {
				runs = append(runs, newRun(p, t.Name, i+1))
			}
		}
	}
	return runs
}

func newRun(p point, target string, iteration int32) Run {
	return Run{
		ID:         fmt.Sprintf("%s-%s-i%d", p.id, Shorten(target, maxTargetInID), iteration),
		Point:      p.id,
		Dataset:    p.dataset,
		Target:     target,
		Parameters: p.parameters,
		Iteration:  iteration,
		Workload:   p.workload,
		Load:       p.load,
	}
}

// maxTargetInID leaves room in the 63 characters of a label for point and iteration.
const maxTargetInID = 40

// expandPoints spans the axes, the last one fastest, and leaves out the excluded
// points.
func expandPoints(tree map[string]any, axes []axis, sweep *v1alpha1.Sweep) ([]point, error) {
	var excluded []filter
	if sweep != nil {
		for i, parameters := range sweep.Exclude {
			f, err := readFilter(parameters, axes, fmt.Sprintf("spec.sweep.exclude[%d]", i))
			if err != nil {
				return nil, err
			}
			excluded = append(excluded, f)
		}
	}
	var points []point
	for combination := range product(axes) {
		if slices.ContainsFunc(excluded, combination.matches) {
			continue
		}
		p, err := newPoint(tree, fmt.Sprintf("p%04d", len(points)+1), combination)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	if len(points) == 0 {
		return nil, invalid("spec.sweep.exclude", "it leaves no point; exclude less")
	}
	return points, nil
}

// combination is a value of each axis.
type combination struct {
	axes   []axis
	values []value
}

// product yields every combination of the axes' values, the last axis fastest.
func product(axes []axis) func(yield func(combination) bool) {
	return func(yield func(combination) bool) {
		at := make([]int, len(axes))
		for {
			c := combination{axes: axes, values: make([]value, len(axes))}
			for i, a := range axes {
				c.values[i] = a.values[at[i]]
			}
			if !yield(c) || !advance(at, axes) {
				return
			}
		}
	}
}

// advance counts up, as an odometer does, and is false after the last combination.
func advance(at []int, axes []axis) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < len(axes[i].values) {
			return true
		}
		at[i] = 0
	}
	return false
}

func (c combination) matches(f filter) bool {
	for i, a := range c.axes {
		if want, ok := f[a.path]; ok && want != c.values[i].decoded {
			return false
		}
	}
	return true
}

func (c combination) String() string {
	var text []string
	for i, a := range c.axes {
		text = append(text, fmt.Sprintf("%s %s", a.path, c.values[i].raw.Raw))
	}
	return strings.Join(text, ", ")
}

// newPoint sets the values of a combination in the spec's tree. Each value has been
// checked by itself; the rules across fields are checked here.
func newPoint(tree map[string]any, id string, c combination) (point, error) {
	p := point{id: id}
	merged := runtime.DeepCopyJSON(tree)
	for i, a := range c.axes {
		set(merged, a.path, c.values[i].decoded)
		if p.parameters == nil {
			p.parameters = v1alpha1.Parameters{}
		}
		p.parameters[a.path] = c.values[i].raw
	}
	if faults := specSchema().checkRules(merged); len(faults) > 0 {
		return p, invalid(faults[0].Path, "%s (at the point with %s)", faults[0].Message, c)
	}
	var err error
	p.workload, p.load, err = decode(merged)
	if err != nil {
		return p, invalid("spec.sweep.axes", "%v (at the point with %s)", err, c)
	}
	if err := checkPace(&p.load); err != nil {
		if len(c.axes) > 0 {
			err.Message = fmt.Sprintf("%s (at the point with %s)", err.Message, c)
		}
		return p, err
	}
	return p, nil
}

// set sets a field by its path, making what is above it.
func set(tree map[string]any, path string, v any) {
	names := strings.Split(path, ".")
	last := len(names) - 1
	for _, name := range names[:last] {
		below, ok := tree[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[name] = below
		}
		tree = below
	}
	tree[names[last]] = v
}
