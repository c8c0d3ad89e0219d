package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

// The metrics of a point.
const (
	MetricThroughput  v1alpha1.Metric = "throughput"
	MetricLatencyMean v1alpha1.Metric = "latency.mean"
	MetricLatencyP50  v1alpha1.Metric = "latency.p50"
	MetricLatencyP90  v1alpha1.Metric = "latency.p90"
	MetricLatencyP95  v1alpha1.Metric = "latency.p95"
	MetricLatencyP99  v1alpha1.Metric = "latency.p99"
	MetricLatencyP999 v1alpha1.Metric = "latency.p999"
	MetricLatencyMax  v1alpha1.Metric = "latency.max"
	MetricElapsed     v1alpha1.Metric = "elapsed"
	MetricErrors      v1alpha1.Metric = "errors"
	MetricErrorRate   v1alpha1.Metric = "errorRate"
)

// The verdicts of a point.
const (
	VerdictPassed = "Passed"
	VerdictFailed = "Failed"
)

// Metric is a number of the point: throughput in events per second (the median of the
// iterations), latencies in seconds (over all events of all iterations), elapsed in
// seconds (the average), errors, and errors per attempt. It is false where there is none.
func (p Point) Metric(m v1alpha1.Metric) (float64, bool) {
	if len(p.Iterations) == 0 || p.EventsPerSecond == nil || p.ElapsedSeconds == nil {
		return 0, false
	}
	switch m {
	case MetricThroughput:
		return p.EventsPerSecond.Median, true
	case MetricElapsed:
		return p.ElapsedSeconds.Average, true
	case MetricErrors:
		return float64(p.Errors), true
	case MetricErrorRate:
		return float64(p.Errors) / float64(max(p.Attempts, p.Events+p.Errors, 1)), true
	}
	l := p.LatencyNanos
	if l == nil {
		return 0, false
	}
	nanos, ok := map[v1alpha1.Metric]int64{
		MetricLatencyMean: l.Mean, MetricLatencyP50: l.P50, MetricLatencyP90: l.P90, MetricLatencyP95: l.P95,
		MetricLatencyP99: l.P99, MetricLatencyP999: l.P999, MetricLatencyMax: l.Max,
	}[m]
	return time.Duration(nanos).Seconds(), ok
}

// Verdict is what the thresholds say of the points.
type Verdict struct {
	// Met counts the thresholds that were judged at a point and hold there, once for
	// each point.
	Met int `json:"met"`
	// NotMet and NotJudged say in words which do not hold, and which could not be judged
	// and why.
	NotMet    []string `json:"notMet,omitempty"`
	NotJudged []string `json:"notJudged,omitempty"`
	// NoBaseline counts the thresholds that wait for a first baseline.
	NoBaseline int `json:"noBaseline,omitempty"`
}

// Judge holds the points against the thresholds and writes the verdict of each point
// into it. Without a baseline those that refer to it are not judged: baseline is nil
// where the benchmark has none yet.
func Judge(thresholds []v1alpha1.Threshold, points []Point, baseline *Baseline) Verdict {
	var v Verdict
	byKey := map[string]*Point{}
	for i := range points {
		byKey[points[i].Key()] = &points[i]
		points[i].Verdict = ""
	}
	for _, t := range thresholds {
		if t.To == AgainstBaseline && baseline == nil {
			v.NoBaseline++
			if t.Min == "" && t.Max == "" {
				continue
			}
		}
		applies := false
		for i := range points {
			if !matches(t.Where, points[i].Parameters) {
				continue
			}
			applies = true
			v.judge(t, &points[i], byKey, baseline)
		}
		if !applies {
			v.NotJudged = append(v.NotJudged, fmt.Sprintf("%s: no point %s was measured", t.Metric, whereText(t.Where)))
		}
	}
	return v
}

// judge holds a point against a threshold.
func (v *Verdict) judge(t v1alpha1.Threshold, p *Point, byKey map[string]*Point, baseline *Baseline) {
	value, ok := p.Metric(t.Metric)
	if !ok {
		v.NotJudged = append(v.NotJudged, fmt.Sprintf("%s of %s: no iteration succeeded", t.Metric, p.Label()))
		return
	}
	faults := absoluteFaults(t, value)
	if t.To != "" && t.To != p.Target && (t.To != AgainstBaseline || baseline != nil) {
		base, ok := reference(t, p, byKey, baseline)
		if !ok {
			v.NotJudged = append(v.NotJudged, fmt.Sprintf("%s of %s: %s has no such point", t.Metric, p.Label(), t.To))
		} else {
			faults = append(faults, ratioFaults(t, value, base)...)
		}
		if !ok && len(faults) == 0 {
			return
		}
	}
	if len(faults) == 0 {
		v.Met++
		if p.Verdict == "" {
			p.Verdict = VerdictPassed
		}
		return
	}
	p.Verdict = VerdictFailed
	v.NotMet = append(v.NotMet, fmt.Sprintf("%s of %s is %s", t.Metric, p.Label(), strings.Join(faults, " and ")))
}

// reference is the metric at the same point of what the threshold compares with.
func reference(t v1alpha1.Threshold, p *Point, byKey map[string]*Point, baseline *Baseline) (float64, bool) {
	if t.To == AgainstBaseline {
		base, ok := baseline.find(*p)
		if !ok {
			return 0, false
		}
		return base.Metric(t.Metric)
	}
	other := *p
	other.Target = t.To
	base, ok := byKey[other.Key()]
	if !ok {
		return 0, false
	}
	return base.Metric(t.Metric)
}

func absoluteFaults(t v1alpha1.Threshold, value float64) (faults []string) {
	if low, ok := limit(t.Metric, t.Min); ok && value < low {
		faults = append(faults, fmt.Sprintf("%s, less than %s", FormatMetric(t.Metric, value), t.Min))
	}
	if high, ok := limit(t.Metric, t.Max); ok && value > high {
		faults = append(faults, fmt.Sprintf("%s, more than %s", FormatMetric(t.Metric, value), t.Max))
	}
	return faults
}

func ratioFaults(t v1alpha1.Threshold, value, base float64) (faults []string) {
	// value < ratio × base, so that nothing is divided by zero: no error in the baseline
	// allows none now.
	if ratio, ok := limit("", t.MinRatio); ok && value < ratio*base {
		faults = append(faults, ratioFault(t, value, base)+", less than "+t.MinRatio)
	}
	if ratio, ok := limit("", t.MaxRatio); ok && value > ratio*base {
		faults = append(faults, ratioFault(t, value, base)+", more than "+t.MaxRatio)
	}
	return faults
}

func ratioFault(t v1alpha1.Threshold, value, base float64) string {
	text := fmt.Sprintf("%s, with %s of %s", FormatMetric(t.Metric, value), t.To, FormatMetric(t.Metric, base))
	if base > 0 {
		text += fmt.Sprintf(" a ratio of %.3f", value/base)
	}
	return text
}

// limit reads a limit that the planner has checked: of a duration in seconds.
func limit(m v1alpha1.Metric, text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	if isDuration(m) {
		d, err := time.ParseDuration(text)
		return d.Seconds(), err == nil
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

func isDuration(m v1alpha1.Metric) bool {
	return m == MetricElapsed || strings.HasPrefix(string(m), "latency.")
}

// FormatMetric is a metric for people, with its unit.
func FormatMetric(m v1alpha1.Metric, v float64) string {
	switch {
	case isDuration(m):
		return FormatSeconds(v)
	case m == MetricThroughput:
		return decimal(v, 1) + " events/s"
	case m == MetricErrors:
		return decimal(v, 0)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// FormatSeconds is a duration with four digits, such as 1.234 ms.
func FormatSeconds(s float64) string {
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if s >= unit.seconds {
			return strconv.FormatFloat(s/unit.seconds, 'g', 4, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(s*1e9, 'f', 0, 64) + " ns"
}

// matches reports whether parameters have all the values of a filter.
func matches(where, parameters v1alpha1.Parameters) bool {
	for path, want := range where {
		if have, ok := parameters[path]; !ok || !sameValue(have, want) {
			return false
		}
	}
	return true
}

// sameValue compares what is meant: 10 and 1e1 are one value.
func sameValue(a, b apiextensionsv1.JSON) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	if json.Unmarshal(a.Raw, &x) != nil || json.Unmarshal(b.Raw, &y) != nil {
		return false
	}
	switch x.(type) {
	case float64, string, bool:
		return x == y
	}
	return false
}

// Label names a point for people, such as "mariadb at clients=10".
func (p Point) Label() string {
	if len(p.Parameters) == 0 {
		return p.Target
	}
	return p.Target + " at " + ParametersText(p.Parameters)
}

func whereText(where v1alpha1.Parameters) string {
	if len(where) == 0 {
		return "at all"
	}
	return "with " + ParametersText(where)
}

// ParametersText is parameters in a line, such as "clients=10 eventsPerClient=1000".
func ParametersText(parameters v1alpha1.Parameters) string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(parameters)) {
		all = append(all, lastName(path)+"="+strings.Trim(string(parameters[path].Raw), `"`))
	}
	return strings.Join(all, " ")
}
