package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"dbbench.dev/operator/api/v1alpha1"
)

// MaxPoints is the greatest number of points that the axes of a sweep may span.
const MaxPoints = 4096

// Expand turns a spec, its defaults set, into its runs in the order in which they are
// done. The same spec always gives the same runs. A spec that cannot be run gives a
// *SpecError.
func Expand(spec *v1alpha1.DBBenchmarkSpec) ([]Run, error) {
	if err := checkSupported(spec); err != nil {
		return nil, err
	}
	points, err := expandPoints(spec)
	if err != nil {
		return nil, err
	}
	return order(spec, points), nil
}

// point is a combination of the axes' values, on any target.
type point struct {
	id         string
	parameters v1alpha1.Parameters
	workload   v1alpha1.Workload
	load       v1alpha1.Load
}

// order lists the runs of the points. RoundRobin alternates points and targets, so
// that what drifts in the servers or the node hits all of them alike.
func order(spec *v1alpha1.DBBenchmarkSpec, points []point) []Run {
	runs := make([]Run, 0, len(points)*len(spec.Targets)*int(spec.Iterations))
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
		ID:         fmt.Sprintf("%s-%s-i%d", p.id, shorten(target, maxTargetInID), iteration),
		Point:      p.id,
		Target:     target,
		Parameters: p.parameters,
		Iteration:  iteration,
		Workload:   p.workload,
		Load:       p.load,
	}
}

// maxTargetInID leaves room in the 63 characters of a label for point and iteration.
const maxTargetInID = 40

// shorten cuts a name that is too long and ends it with a digest, so that different
// names stay different.
func shorten(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:limit-9], "-.") + "-" + hex.EncodeToString(sum[:4])
}

// expandPoints spans the axes, the last one fastest, and leaves out the excluded points.
func expandPoints(spec *v1alpha1.DBBenchmarkSpec) ([]point, error) {
	tree, err := toTree(spec)
	if err != nil {
		return nil, err
	}
	delete(tree, "sweep") // checked by itself, and the same for every point
	sweep := spec.Sweep
	if sweep == nil {
		sweep = &v1alpha1.Sweep{}
	}
	axes, err := readAxes(tree, sweep)
	if err != nil {
		return nil, err
	}
	excluded, err := readFilters(sweep.Exclude, axes, "spec.sweep.exclude")
	if err != nil {
		return nil, err
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

func invalid(path, format string, args ...any) *SpecError {
	return &SpecError{Reason: v1alpha1.ReasonInvalidSpec, Path: path, Message: fmt.Sprintf(format, args...)}
}

// axis is an axis whose path and values have been read.
type axis struct {
	path   string
	values []value
}

// value is one value of an axis: as it stands in the spec, and decoded.
type value struct {
	raw     apiextensionsv1.JSON
	decoded any
	at      string // where it stands in the spec
}

func readAxes(tree map[string]any, sweep *v1alpha1.Sweep) ([]axis, error) {
	axes := make([]axis, 0, len(sweep.Axes))
	total := 1
	for i, a := range sweep.Axes {
		at := fmt.Sprintf("spec.sweep.axes[%d]", i)
		if slices.ContainsFunc(axes, func(b axis) bool { return b.path == a.Path }) {
			return nil, invalid(at+".path", "%s stands in an earlier axis too; keep one of them", a.Path)
		}
		if err := checkPath(tree, a.Path); err != nil {
			return nil, invalid(at+".path", "%v", err)
		}
		values, err := readValues(a.Values, at+".values")
		if err != nil {
			return nil, err
		}
		if total *= len(values); total > MaxPoints {
			return nil, invalid("spec.sweep.axes", "the axes span more than %d points; take values or axes away", MaxPoints)
		}
		axes = append(axes, axis{a.Path, values})
	}
	return axes, nil
}

// checkPath sees that a path names a field, and one of the workload that is used.
func checkPath(tree map[string]any, path string) error {
	parts := strings.Split(path, ".")
	if parts[0] != "workload" && parts[0] != "load" {
		return fmt.Errorf("%q is not under workload or load", path)
	}
	if err := loadSchema().lookUp(path); err != nil {
		return err
	}
	if parts[0] == "load" {
		return nil
	}
	workload, _ := tree["workload"].(map[string]any)
	if _, ok := workload[parts[1]]; !ok {
		return fmt.Errorf("it is under workload.%s, but the workload of this spec is %s", parts[1], strings.Join(slices.Sorted(maps.Keys(workload)), ", "))
	}
	return nil
}

func readValues(raw []apiextensionsv1.JSON, at string) ([]value, error) {
	if len(raw) == 0 {
		return nil, invalid(at, "an axis needs a value")
	}
	values := make([]value, 0, len(raw))
	for i, r := range raw {
		v := value{raw: r, at: fmt.Sprintf("%s[%d]", at, i)}
		decoded, err := decodeScalar(r)
		if err != nil {
			return nil, invalid(v.at, "%v", err)
		}
		v.decoded = decoded
		if j := slices.IndexFunc(values, func(w value) bool { return equal(w.decoded, decoded) }); j >= 0 {
			return nil, invalid(v.at, "%s is the same as %s[%d]; keep one of them", r.Raw, at, j)
		}
		values = append(values, v)
	}
	return values, nil
}

// decodeScalar reads a JSON value that is a number, a string or a boolean. A number
// that is whole becomes an int64, however it is written.
func decodeScalar(raw apiextensionsv1.JSON) (any, error) {
	if len(raw.Raw) == 0 {
		return nil, errors.New("null is not a number, a string or a boolean")
	}
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%q is no JSON value", raw.Raw)
	}
	switch v := v.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		return decodeNumber(v)
	}
	return nil, fmt.Errorf("%s is not a number, a string or a boolean", raw.Raw)
}

func decodeNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	// An exponent that is out of all proportion would cost all memory as a fraction.
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("%s is out of range", n)
	}
	if i, accuracy := big.NewFloat(f).Int64(); accuracy == big.Exact {
		return i, nil
	}
	return f, nil
}

// equal compares decoded values; numbers are equal by value.
func equal(a, b any) bool { return a == b }

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

// filter chooses points by the values of some axes.
type filter map[string]any

func (c combination) matches(f filter) bool {
	for i, a := range c.axes {
		if want, ok := f[a.path]; ok && !equal(want, c.values[i].decoded) {
			return false
		}
	}
	return true
}

// readFilters reads parameters that are to choose points. One that can choose none is
// a mistake, and said.
func readFilters(list []v1alpha1.Parameters, axes []axis, at string) ([]filter, error) {
	filters := make([]filter, 0, len(list))
	for i, parameters := range list {
		f := filter{}
		for _, path := range slices.Sorted(maps.Keys(parameters)) {
			here := fmt.Sprintf("%s[%d].%s", at, i, path)
			j := slices.IndexFunc(axes, func(a axis) bool { return a.path == path })
			if j < 0 {
				return nil, invalid(here, "no axis has this path")
			}
			decoded, err := decodeScalar(parameters[path])
			if err != nil {
				return nil, invalid(here, "%v", err)
			}
			if !slices.ContainsFunc(axes[j].values, func(v value) bool { return equal(v.decoded, decoded) }) {
				return nil, invalid(here, "%s is not among the values of the axis", parameters[path].Raw)
			}
			f[path] = decoded
		}
		if len(f) == 0 {
			return nil, invalid(fmt.Sprintf("%s[%d]", at, i), "it is empty; name a path and a value")
		}
		filters = append(filters, f)
	}
	return filters, nil
}

// newPoint sets the values of a combination in the spec's tree, and holds the result
// to what admission holds a spec to.
func newPoint(tree map[string]any, id string, c combination) (point, error) {
	p := point{id: id}
	merged := runtime.DeepCopyJSON(tree)
	for i, a := range c.axes {
		set(merged, strings.Split(a.path, "."), c.values[i].decoded)
		if p.parameters == nil {
			p.parameters = v1alpha1.Parameters{}
		}
		p.parameters[a.path] = c.values[i].raw
	}
	if errs := loadSchema().validate(merged); len(errs) > 0 {
		return p, c.blame(errs[0].Field, errs[0].ErrorBody())
	}
	if err := decodeStrictly(merged["workload"], &p.workload); err != nil {
		return p, c.blame("spec.workload", err.Error())
	}
	if err := decodeStrictly(merged["load"], &p.load); err != nil {
		return p, c.blame("spec.load", err.Error())
	}
	return p, nil
}

// blame turns a fault of a point into one of the value that brought it: that of the
// axis whose path the fault names, else the spec's field.
func (c combination) blame(path, message string) *SpecError {
	for i, a := range c.axes {
		if path == "spec."+a.path {
			return invalid(c.values[i].at, "%s: %s", a.path, message)
		}
	}
	if len(c.axes) == 0 {
		return invalid(path, "%s", message)
	}
	var with []string
	for i, a := range c.axes {
		with = append(with, fmt.Sprintf("%s %s", a.path, c.values[i].raw.Raw))
	}
	return invalid(path, "%s (at the point with %s)", message, strings.Join(with, ", "))
}

// set sets a field by its path, making what is above it.
func set(tree map[string]any, path []string, v any) {
	for _, name := range path[:len(path)-1] {
		below, ok := tree[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[name] = below
		}
		tree = below
	}
	tree[path[len(path)-1]] = v
}

// toTree is a spec as JSON, whole numbers as int64, with the defaults that Go leaves
// out because they are zero.
func toTree(spec *v1alpha1.DBBenchmarkSpec) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, invalid("spec", "%v", err)
	}
	loadSchema().setDefaults(tree)
	return tree, nil
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

// Default sets the defaults of a spec that has not been through an API server.
func Default(spec *v1alpha1.DBBenchmarkSpec) error {
	tree, err := toTree(spec)
	if err != nil {
		return err
	}
	var defaulted v1alpha1.DBBenchmarkSpec
	if err := decodeStrictly(tree, &defaulted); err != nil {
		return err
	}
	*spec = defaulted
	return nil
}

// Validate holds a spec to what admission holds it to, for programs without a cluster.
func Validate(spec *v1alpha1.DBBenchmarkSpec) error {
	tree, err := toTree(spec)
	if err != nil {
		return err
	}
	var faults []error
	for _, e := range loadSchema().validate(tree) {
		faults = append(faults, invalid(e.Field, "%s", e.ErrorBody()))
	}
	return errors.Join(faults...)
}

// Hash is a digest of the part of a spec that decides what is run. A change elsewhere
// (suspend, thresholds, limits, the schedule) starts no execution.
func Hash(spec *v1alpha1.DBBenchmarkSpec) string {
	s := spec.DeepCopy()
	s.Suspend, s.Schedule, s.HistoryLimit = false, nil, nil
	s.Thresholds, s.Baseline, s.MaxSpreadPercent = nil, nil, nil
	s.Cleanup, s.OnFailure, s.Retries, s.RunTimeout = "", "", 0, nil
	text, err := json.Marshal(s)
	if err != nil {
		// A spec came out of JSON; the marker keeps a defect here from looking like a change.
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
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
