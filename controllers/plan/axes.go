package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"dbbench.dev/operator/api/v1alpha1"
)

// axis is an axis whose path and values have been checked.
type axis struct {
	path   string
	values []value
}

// value is one value of an axis: as it stands in the spec, and decoded to a string, a
// bool, an int64 or a float64. Decoded values compare with ==, numbers by value.
type value struct {
	raw     apiextensionsv1.JSON
	decoded any
}

// readAxes checks the axes of a sweep against the spec that they vary.
func readAxes(tree map[string]any, sweep *v1alpha1.Sweep) ([]axis, error) {
	if sweep == nil {
		return nil, nil
	}
	axes := make([]axis, 0, len(sweep.Axes))
	points := 1
	for i, a := range sweep.Axes {
		at := fmt.Sprintf("spec.sweep.axes[%d]", i)
		if err := checkPath(tree, a.Path); err != nil {
			return nil, invalid(at+".path", "%v", err)
		}
		// Before the values are read: what they cost is bounded by it.
		if points *= len(a.Values); points > MaxPoints {
			return nil, invalid("spec.sweep.axes", "the axes span more than %d points; take values or axes away", MaxPoints)
		}
		values, err := readValues(tree, a, at+".values")
		if err != nil {
			return nil, err
		}
		axes = append(axes, axis{a.Path, values})
	}
	return axes, nil
}

// checkPath sees that a path names a field with a single value, and one of the
// workload that is used.
func checkPath(tree map[string]any, path string) error {
	if err := specSchema().checkPath(path); err != nil {
		return err
	}
	names := strings.Split(path, ".")
	if names[0] == "load" {
		return nil
	}
	workload, _ := tree["workload"].(map[string]any)
	if _, ok := workload[names[1]]; !ok {
		return fmt.Errorf("it is under workload.%s, but the workload of this spec is %s; sweep a field of that",
			names[1], strings.Join(slices.Sorted(maps.Keys(workload)), ", "))
	}
	return nil
}

func readValues(tree map[string]any, a v1alpha1.Axis, at string) ([]value, error) {
	values := make([]value, 0, len(a.Values))
	first := make(map[any]int, len(a.Values))
	for i, raw := range a.Values {
		here := fmt.Sprintf("%s[%d]", at, i)
		decoded, err := decodeScalar(raw)
		if err != nil {
			return nil, invalid(here, "%v", err)
		}
		if j, ok := first[decoded]; ok {
			return nil, invalid(here, "%s is the same as %s[%d]; keep one of them", raw.Raw, at, j)
		}
		first[decoded] = i
		if err := checkValue(tree, a.Path, decoded); err != nil {
			return nil, invalid(here, "%s: %v", a.Path, err)
		}
		values = append(values, value{raw, decoded})
	}
	return values, nil
}

// checkValue holds a value by itself to the type and the range of its field.
func checkValue(tree map[string]any, path string, v any) error {
	merged := runtime.DeepCopyJSON(tree)
	set(merged, path, v)
	if faults := specSchema().checkFields(merged); len(faults) > 0 {
		return errors.New(faults[0].Message)
	}
	_, _, err := decode(merged)
	return err
}

// decodeScalar reads a JSON value that is a number, a string or a boolean. A number
// that is whole becomes an int64, however it is written.
func decodeScalar(raw apiextensionsv1.JSON) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%q is not JSON", raw.Raw)
	}
	switch v := v.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		return decodeNumber(v)
	case nil:
		return nil, errors.New("null is not a value; write a number, a string or a boolean")
	}
	return nil, fmt.Errorf("%s is not a single value; write a number, a string or a boolean", raw.Raw)
}

func decodeNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	// Not as a fraction of big integers: an exponent out of all proportion would take
	// all memory.
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("%s is out of range", n)
	}
	if i, accuracy := big.NewFloat(f).Int64(); accuracy == big.Exact {
		return i, nil
	}
	return f, nil
}

// filter chooses points by the decoded values of some axes.
type filter map[string]any

// readFilter reads parameters that are to choose points. Those that can choose none
// are a mistake, and refused.
func readFilter(parameters v1alpha1.Parameters, axes []axis, at string) (filter, error) {
	if len(parameters) == 0 {
		return nil, invalid(at, "it is empty; name the path of an axis and a value")
	}
	f := filter{}
	for _, path := range slices.Sorted(maps.Keys(parameters)) {
		here := at + "." + path
		i := slices.IndexFunc(axes, func(a axis) bool { return a.path == path })
		if i < 0 {
			return nil, invalid(here, "no axis of the sweep has this path")
		}
		decoded, err := decodeScalar(parameters[path])
		if err != nil {
			return nil, invalid(here, "%v", err)
		}
		if !slices.ContainsFunc(axes[i].values, func(v value) bool { return v.decoded == decoded }) {
			return nil, invalid(here, "%s is not among the values of the axis", parameters[path].Raw)
		}
		f[path] = decoded
	}
	return f, nil
}
