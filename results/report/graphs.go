package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

const (
	// maxLines is how many lines of one chart can be told apart, by colour and marker.
	maxLines = 8
	// maxCharts bounds the charts of an axis.
	maxCharts = 6
)

// axisGraphs are throughput and p99 against each axis that has two values or more,
// with a line for each target and combination of the other axes' values. Where these
// are too many, each combination gets a chart of its own.
func axisGraphs(in Input, points []results.Point) (all []graph, leftOut int) {
	if in.Spec.Sweep == nil {
		return nil, 0
	}
	targets := targetNames(in.Spec)
	for _, axis := range in.Spec.Sweep.Axes {
		if len(axis.Values) < 2 {
			continue
		}
		groups := groupBy(points, axis.Path)
		if len(groups)*len(targets) > maxLines {
			leftOut += max(len(groups)-maxCharts, 0)
			for _, g := range groups[:min(len(groups), maxCharts)] {
				all = append(all, axisPair(axis, targets, []group{g}, g.name)...)
			}
			continue
		}
		all = append(all, axisPair(axis, targets, groups, "")...)
	}
	return all, leftOut
}

// group are the points that differ in one axis and the target alone.
type group struct {
	name   string // the values of the other axes
	points []results.Point
}

func groupBy(points []results.Point, path string) (all []group) {
	index := map[string]int{}
	for _, p := range points {
		others := v1alpha1.Parameters{}
		for other, v := range p.Parameters {
			if other != path {
				others[other] = v
			}
		}
		name := results.ParametersText(others)
		i, ok := index[name]
		if !ok {
			i = len(all)
			index[name] = i
			all = append(all, group{name: name})
		}
		all[i].points = append(all[i].points, p)
	}
	return all
}

func axisPair(axis v1alpha1.Axis, targets []string, groups []group, where string) []graph {
	name := lastName(axis.Path)
	suffix := ""
	if where != "" {
		suffix = ", " + where
	}
	throughput := graph{
		title: "Throughput by " + name + suffix, xLabel: name, yLabel: "events per second",
		description: "Median of the iterations; the band is from the least to the greatest.", yUnit: count,
	}
	latency := graph{
		title: "Latency p99 by " + name + suffix, xLabel: name, yLabel: "latency (p99)",
		description: "99th percentile of the latency of all events of all iterations; the band is over the iterations.", yUnit: seconds,
	}
	at, names := positions(axis)
	throughput.names, latency.names = names, names
	if names == nil {
		setNumeric(&throughput, axis, at)
		setNumeric(&latency, axis, at)
	}
	style := 0
	for _, g := range groups {
		for _, target := range targets {
			t := line{name: lineName(targets, target, g.name, where), style: style % maxLines}
			l := t
			for _, p := range g.points {
				x, ok := at[string(p.Parameters[axis.Path].Raw)]
				if !ok || p.Target != target || p.EventsPerSecond == nil || p.LatencyNanos == nil {
					continue
				}
				e := p.EventsPerSecond
				t.values = append(t.values, xy{x, e.Median, e.Minimum, e.Maximum})
				low, high := p99Range(p)
				l.values = append(l.values, xy{x, nanos(p.LatencyNanos.P99), low, high})
			}
			byX(t.values)
			byX(l.values)
			throughput.lines, latency.lines = append(throughput.lines, t), append(latency.lines, l)
			style++
		}
	}
	latency.logY = wide(latency.lines)
	return []graph{throughput, latency}
}

func byX(v []xy) { slices.SortFunc(v, func(a, b xy) int { return int(math.Copysign(1, a.x-b.x)) }) }

// lineName says what tells a line apart from the others of its chart.
func lineName(targets []string, target, group, where string) string {
	switch {
	case group == "" || where != "":
		return target
	case len(targets) == 1:
		return group
	}
	return target + ", " + group
}

func p99Range(p results.Point) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, i := range p.Iterations {
		low, high = min(low, nanos(i.P99Nanos)), max(high, nanos(i.P99Nanos))
	}
	return low, high
}

// positions are where the values of an axis are: at their number, or one after the
// other where one of them is none; names are then their labels.
func positions(axis v1alpha1.Axis) (at map[string]float64, names []string) {
	at = map[string]float64{}
	for _, v := range axis.Values {
		number, err := strconv.ParseFloat(string(v.Raw), 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			at = map[string]float64{}
			for i, v := range axis.Values {
				at[string(v.Raw)] = float64(i)
				names = append(names, strings.Trim(string(v.Raw), `"`))
			}
			return at, names
		}
		at[string(v.Raw)] = number
	}
	return at, nil
}

// setNumeric has the x axis labelled at its values, and logarithmic where they are far
// apart.
func setNumeric(g *graph, axis v1alpha1.Axis, at map[string]float64) {
	for _, v := range axis.Values {
		g.ticks = append(g.ticks, at[string(v.Raw)])
	}
	slices.Sort(g.ticks)
	g.ticks = slices.Compact(g.ticks)
	first, last := g.ticks[0], g.ticks[len(g.ticks)-1]
	const farApart = 8
	g.logX = first > 0 && last/first >= farApart
	g.xUnit = count
}

// wide reports whether values are so far apart that a linear axis would hide the small.
func wide(lines []line) bool {
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.values {
			if v.y > 0 {
				low, high = min(low, v.y), max(high, v.y)
			}
		}
	}
	const tooFar = 20
	return high/low > tooFar
}

// detail is a point on all targets.
type detail struct {
	name   string
	points []results.Point
}

// details are the points in order, those of one combination together.
func details(points []results.Point) (all []detail) {
	index := map[string]int{}
	for _, p := range points {
		if p.LatencyNanos == nil {
			continue
		}
		key := p.ParametersKey()
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, detail{name: results.ParametersText(p.Parameters)})
		}
		all[i].points = append(all[i].points, p)
	}
	return all
}

// graphs are those of a point: percentiles, distribution, and its runs over time.
func (d detail) graphs(targets []string, runs map[string][]results.Envelope) []graph {
	return []graph{d.percentiles(targets), d.distribution(targets), d.overTime(targets, runs)}
}

func (d detail) percentiles(targets []string) graph {
	g := graph{
		title: "Latency percentiles", xLabel: "percentile", yLabel: "latency", yUnit: seconds,
		description: "Of all events of all iterations, from merged histograms.",
		names:       []string{"p50", "p90", "p95", "p99", "p99.9", "max"},
	}
	for _, p := range d.points {
		l := line{name: p.Target, style: slices.Index(targets, p.Target)}
		for i, v := range []int64{p.LatencyNanos.P50, p.LatencyNanos.P90, p.LatencyNanos.P95, p.LatencyNanos.P99, p.LatencyNanos.P999, p.LatencyNanos.Max} {
			l.values = append(l.values, xy{x: float64(i), y: nanos(v), low: nanos(v), high: nanos(v)})
		}
		g.lines = append(g.lines, l)
	}
	g.logY = wide(g.lines)
	return g
}

func (d detail) distribution(targets []string) graph {
	g := graph{
		title: "Latency distribution", xLabel: "latency", yLabel: "share of events", logX: true, steps: true,
		description: "The share of events in each tenth of a decade.",
		xUnit:       seconds, yUnit: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) + " %" },
	}
	for _, p := range d.points {
		l := line{name: p.Target, style: slices.Index(targets, p.Target)}
		total := int64(0)
		for _, b := range p.Distribution {
			total += b.Count
		}
		if total == 0 {
			continue
		}
		from := nanos(p.Distribution[0].UpToNanos) / math.Pow(10, 0.1)
		l.values = append(l.values, xy{x: from})
		for _, b := range p.Distribution {
			l.values = append(l.values, xy{x: nanos(b.UpToNanos), y: 100 * float64(b.Count) / float64(total)})
		}
		end := l.values[len(l.values)-1]
		l.values = append(l.values, xy{x: end.x})
		g.lines = append(g.lines, l)
	}
	return g
}

// maxSteps bounds what is drawn of a run's course.
const maxSteps = 150

func (d detail) overTime(targets []string, runs map[string][]results.Envelope) graph {
	g := graph{
		title: "Throughput over time", xLabel: "seconds since the start of the run", yLabel: "events per second",
		description: "A line for each iteration; later iterations are dashed.", xUnit: count, yUnit: count, noMark: true,
	}
	for _, p := range d.points {
		for _, run := range runs[p.ID+" "+p.Target] {
			l := line{style: slices.Index(targets, p.Target), dashed: run.Iteration > 1, values: course(run)}
			if run.Iteration == 1 || len(g.lines) == 0 {
				l.name = p.Target
			}
			if len(l.values) > 1 {
				g.lines = append(g.lines, l)
			}
		}
	}
	return g
}

// course is the throughput of a run over time: of several replicas the sum. An interval
// that the end has cut short says little, and is left out.
func course(run results.Envelope) []xy {
	type step struct{ start, width, events int64 }
	var steps []step
	for _, r := range run.Records {
		for i, interval := range r.Series {
			if i == len(steps) {
				steps = append(steps, step{interval.StartNanos, interval.WidthNanos, 0})
			}
			steps[i].events += interval.Events
			steps[i].width = max(steps[i].width, interval.WidthNanos)
		}
	}
	if len(steps) > 1 && steps[len(steps)-1].width < steps[0].width {
		steps = steps[:len(steps)-1]
	}
	every := (len(steps) + maxSteps - 1) / maxSteps
	var all []xy
	for i := 0; i < len(steps); i += every {
		var events, width int64
		for _, s := range steps[i:min(i+every, len(steps))] {
			events, width = events+s.events, width+s.width
		}
		if width > 0 {
			v := float64(events) / time.Duration(width).Seconds()
			all = append(all, xy{x: time.Duration(steps[i].start + width/2).Seconds(), y: v, low: v, high: v})
		}
	}
	return all
}

func nanos(n int64) float64 { return time.Duration(n).Seconds() }

// seconds labels an axis.
func seconds(v float64) string {
	if v == 0 {
		return "0"
	}
	return results.FormatSeconds(v)
}

func chartID(section string, n int) string { return fmt.Sprintf("%s-%d", section, n) }
