package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestScale(t *testing.T) {
	for _, tc := range []struct {
		scale scale
		want  string
	}{
		{scale{low: 0, high: 76943}, "0 20000 40000 60000 80000"},
		{scale{low: 0, high: 1}, "0 0.2 0.4 0.6 0.8 1 1.2"},
		{scale{low: 0, high: 100}, "0 20 40 60 80 100 120"},
		{scale{low: 0.0012, high: 0.023, log: true}, "0.001 0.002 0.005 0.01 0.02 0.05"},
		{scale{low: 0.00012, high: 2.3, log: true}, "0.0001 0.001 0.01 0.1 1"},
	} {
		s := tc.scale
		s.round()
		var all []string
		for _, v := range s.ticks() {
			all = append(all, fmt.Sprint(math.Round(v*1e9)/1e9))
		}
		if got := strings.Join(all, " "); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.scale, got, tc.want)
		}
	}
}

// TestDraw: whatever the values are, coordinates are numbers within the picture.
func TestDraw(t *testing.T) {
	unit := func(v float64) string { return fmt.Sprint(v) }
	for name, values := range map[string][]xy{
		"one":      {{x: 1, y: 5, low: 5, high: 5}},
		"equal":    {{x: 1, y: 5, low: 5, high: 5}, {x: 2, y: 5, low: 5, high: 5}},
		"zero":     {{x: 1, y: 0}, {x: 2, y: 1, low: 0, high: 2}},
		"tiny":     {{x: 1e-9, y: 1e-12, low: 1e-13, high: 1e-12}, {x: 2e-9, y: 1e-12}},
		"enormous": {{x: 1, y: 1e300, low: 1, high: 1e300}, {x: 1e9, y: 1}},
	} {
		for _, log := range []bool{false, true} {
			c, ok := draw("c", graph{lines: []line{{name: "a", values: values}}, logX: log, logY: log, xUnit: unit, yUnit: unit})
			if !ok {
				t.Errorf("%s: nothing is drawn", name)
				continue
			}
			text := fmt.Sprint(c)
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || len(c.YTicks) < 2 || len(c.YTicks) > 12 {
				t.Errorf("%s, log %v: %s", name, log, text)
			}
		}
	}
	for name, values := range map[string][]xy{"nothing": nil, "only zeros": {{x: 1}}} {
		if _, ok := draw("c", graph{lines: []line{{values: values}}, xUnit: unit, yUnit: unit}); ok {
			t.Errorf("%s is drawn", name)
		}
	}
}
