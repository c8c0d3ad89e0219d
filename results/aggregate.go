package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// Points aggregates runs into points, in the order of their ids, then of targets.
// maxSpreadPercent is the spread of throughput above which a point is called unstable.
func Points(runs []Envelope, targets []string, maxSpreadPercent int32) ([]v1alpha1.PointResult, error) {
	type key struct{ point, target string }
	groups := map[key][]Envelope{}
	for _, r := range runs {
		k := key{r.Point, r.Target}
		groups[k] = append(groups[k], r)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.point, b.point), cmp.Compare(slices.Index(targets, a.target), slices.Index(targets, b.target)))
	})
	points := make([]v1alpha1.PointResult, 0, len(keys))
	for _, k := range keys {
		p, err := aggregate(groups[k], maxSpreadPercent)
		if err != nil {
			return nil, fmt.Errorf("point %s on %s: %w", k.point, k.target, err)
		}
		points = append(points, p)
	}
	return points, nil
}

// aggregate makes a point of its iterations.
func aggregate(runs []Envelope, maxSpreadPercent int32) (v1alpha1.PointResult, error) {
	slices.SortFunc(runs, func(a, b Envelope) int { return cmp.Compare(a.Iteration, b.Iteration) })
	first := runs[0]
	p := v1alpha1.PointResult{ID: first.Point, Target: first.Target, Parameters: first.Parameters, Clients: first.Clients}
	var elapsed, throughput []float64
	merged := newHistogram()
	var sum int64
	warnings := map[string]bool{}
	for _, run := range runs {
		if run.Failure != nil {
			p.Failed++
			continue
		}
		p.Iterations++
		for _, w := range runWarnings(run) {
			warnings[w] = true
		}
		seconds := Elapsed(run).Seconds()
		events := eventsOf(run)
		p.Events += events
		p.Errors += errorsOf(run)
		elapsed = append(elapsed, seconds)
		throughput = append(throughput, float64(events)/seconds)
		s, err := mergeInto(merged, run)
		if err != nil {
			return p, fmt.Errorf("run %s: %w", run.Run, err)
		}
		sum += s
	}
	if p.Iterations == 0 {
		return p, nil
	}
	p.ElapsedSeconds = elapsedSeconds(elapsed)
	p.EventsPerSecond = spread(throughput)
	p.LatencyMicros = latency(merged, sum)
	if percent := spreadPercent(throughput); percent > float64(maxSpreadPercent) {
		warnings[fmt.Sprintf("unstable: throughput spreads by %.0f %% over the iterations, more than %d %%", percent, maxSpreadPercent)] = true
	}
	p.Warnings = slices.Sorted(maps.Keys(warnings))
	return p, nil
}

// Elapsed is the duration of a run: from the first replica's start to the last one's
// end, as their common clock would show it.
func Elapsed(run Envelope) time.Duration {
	var longest int64
	for _, r := range run.Records {
		longest = max(longest, r.Result.ElapsedNanos)
	}
	return time.Duration(longest)
}

func eventsOf(run Envelope) (n int64) {
	for _, r := range run.Records {
		n += r.Result.Events
	}
	return n
}

func errorsOf(run Envelope) (n int64) {
	for _, r := range run.Records {
		n += r.Result.Errors
	}
	return n
}

// throttledShare is the part of a run's time that the runner was held back for,
// above which its numbers are suspect.
const throttledShare = 0.01

func runWarnings(run Envelope) []string {
	var all []string
	for _, r := range run.Records {
		all = append(all, r.Result.Warnings...)
		if usage := r.Environment.Runner; float64(usage.ThrottledNanos) > throttledShare*float64(r.Result.ElapsedNanos) {
			all = append(all, "the runner was throttled by its CPU limit: the server may be faster than this shows")
		}
	}
	return all
}

// newHistogram holds nanoseconds from 1 µs to beyond an hour with three digits, as
// the runner records them.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, 4*time.Hour.Nanoseconds(), 3)
}

// mergeInto adds a run's latencies to a histogram and returns their exact sum. What
// does not fit is an error: nothing is dropped silently.
func mergeInto(h *hdrhistogram.Histogram, run Envelope) (sum int64, err error) {
	for _, r := range run.Records {
		for _, op := range r.Operations {
			s, err := mergeOperation(h, op)
			if err != nil {
				return 0, err
			}
			sum += s
		}
	}
	return sum, nil
}

func mergeOperation(h *hdrhistogram.Histogram, op contract.Operation) (int64, error) {
	if op.Count == 0 {
		return 0, nil
	}
	part, err := hdrhistogram.Decode([]byte(op.Histogram))
	if err != nil {
		return 0, fmt.Errorf("histogram of %s: %w", op.Name, err)
	}
	if part.TotalCount() != op.Count {
		return 0, fmt.Errorf("histogram of %s holds %d values, but %d are counted", op.Name, part.TotalCount(), op.Count)
	}
	if dropped := h.Merge(part); dropped > 0 {
		return 0, fmt.Errorf("histogram of %s has %d values out of range", op.Name, dropped)
	}
	return op.SumNanos, nil
}

func elapsedSeconds(v []float64) *v1alpha1.ElapsedSeconds {
	var sum float64
	for _, s := range v {
		sum += s
	}
	return &v1alpha1.ElapsedSeconds{
		Average: decimal(sum/float64(len(v)), 3), Minimum: decimal(slices.Min(v), 3), Maximum: decimal(slices.Max(v), 3),
	}
}

func spread(v []float64) *v1alpha1.Spread {
	return &v1alpha1.Spread{Median: decimal(median(v), 3), Minimum: decimal(slices.Min(v), 3), Maximum: decimal(slices.Max(v), 3)}
}

// spreadPercent is (maximum - minimum) / median in percent.
func spreadPercent(v []float64) float64 {
	return 100 * (slices.Max(v) - slices.Min(v)) / median(v)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

func latency(h *hdrhistogram.Histogram, sum int64) *v1alpha1.Latency {
	if h.TotalCount() == 0 {
		return nil
	}
	micros := func(percentile float64) int64 { return toMicros(h.ValueAtQuantile(percentile)) }
	return &v1alpha1.Latency{
		Mean: toMicros(sum / h.TotalCount()), P50: micros(50), P90: micros(90), P95: micros(95),
		P99: micros(99), P999: micros(99.9), Max: toMicros(h.Max()),
	}
}

// toMicros rounds to the nearest microsecond.
func toMicros(nanos int64) int64 { return (nanos + 500) / 1000 }

// statusBytes bounds the points in a status; the ConfigMaps hold all of them.
const statusBytes = 160 << 10

// pointBytes is a generous size of a point as JSON, parameters and warnings aside.
const pointBytes = 600

// Bound cuts a list of points to what fits a status, and returns how many it left out.
func Bound(points []v1alpha1.PointResult) ([]v1alpha1.PointResult, int32) {
	size := 0
	for i, p := range points {
		size += pointBytes
		for path, v := range p.Parameters {
			size += len(path) + len(v.Raw) + 8
		}
		for _, w := range p.Warnings {
			size += len(w) + 4
		}
		if size > statusBytes {
			return points[:i], int32(len(points) - i)
		}
	}
	return points, 0
}

// Latest is the point's result in two words.
func Latest(p v1alpha1.PointResult) *v1alpha1.LatestResult {
	if p.EventsPerSecond == nil || p.LatencyMicros == nil {
		return nil
	}
	p99 := time.Duration(p.LatencyMicros.P99) * time.Microsecond
	return &v1alpha1.LatestResult{EventsPerSecond: p.EventsPerSecond.Median, P99: p99.String()}
}
