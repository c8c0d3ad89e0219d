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

// statusBytes bounds the points in a status; the ConfigMaps hold all of them.
const statusBytes = 160 << 10

// Summary is what a status holds of the runs.
type Summary struct {
	Points []v1alpha1.PointResult
	// Truncated is the number of points beyond those that a status has room for.
	Truncated int32
	// Latest is the result of the point whose run ended last.
	Latest *v1alpha1.LatestResult
}

type pointKey struct{ point, target string }

// Summarise aggregates runs into points, in the order of their ids, then of targets.
// maxSpreadPercent is the spread of throughput above which a point is called unstable.
func Summarise(runs []Envelope, targets []string, maxSpreadPercent int32) Summary {
	runs = slices.DeleteFunc(slices.Clone(runs), func(e Envelope) bool { return e.Lost > 0 })
	groups := map[pointKey][]Envelope{}
	for _, r := range runs {
		k := pointKey{r.Point, r.Target}
		groups[k] = append(groups[k], r)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b pointKey) int {
		return cmp.Or(cmp.Compare(a.point, b.point), cmp.Compare(slices.Index(targets, a.target), slices.Index(targets, b.target)))
	})
	var s Summary
	size := 0
	for i, k := range keys {
		p := aggregate(groups[k], maxSpreadPercent)
		if size += sizeOf(p); size > statusBytes {
			s.Truncated = int32(len(keys) - i)
			break
		}
		s.Points = append(s.Points, p)
	}
	s.Latest = latestOf(runs, groups, maxSpreadPercent)
	return s
}

func latestOf(runs []Envelope, groups map[pointKey][]Envelope, maxSpreadPercent int32) *v1alpha1.LatestResult {
	runs = slices.DeleteFunc(slices.Clone(runs), func(e Envelope) bool { return e.Failure != nil })
	if len(runs) == 0 {
		return nil
	}
	last := slices.MaxFunc(runs, func(a, b Envelope) int { return a.Finished.Compare(b.Finished) })
	p := aggregate(groups[pointKey{last.Point, last.Target}], maxSpreadPercent)
	if p.EventsPerSecond == nil || p.LatencyMicros == nil {
		return nil
	}
	p99 := time.Duration(p.LatencyMicros.P99) * time.Microsecond
	return &v1alpha1.LatestResult{EventsPerSecond: p.EventsPerSecond.Median, P99: p99.String()}
}

// sizeOf is a generous estimate of a point's JSON in bytes.
func sizeOf(p v1alpha1.PointResult) int {
	size := 600
	for path, v := range p.Parameters {
		size += len(path) + len(v.Raw) + 8
	}
	for _, w := range p.Warnings {
		size += len(w) + 4
	}
	return size
}

// maxWarnings bounds those of a point.
const maxWarnings = 8

// aggregate makes a point of its iterations.
func aggregate(runs []Envelope, maxSpreadPercent int32) v1alpha1.PointResult {
	slices.SortFunc(runs, func(a, b Envelope) int { return cmp.Compare(a.Iteration, b.Iteration) })
	first := runs[0]
	p := v1alpha1.PointResult{ID: first.Point, Target: first.Target, Parameters: first.Parameters, Clients: first.Clients}
	var elapsed, throughput []float64
	var sum int64
	merged := newHistogram()
	warnings := map[string]bool{}
	for _, run := range runs {
		if run.Failure != nil {
			p.Failed++
			continue
		}
		if err := mergeInto(merged, run); err != nil {
			// Records are checked before they are stored.
			p.Failed++
			warnings[fmt.Sprintf("the stored result of %s was changed: %v", run.Run, err)] = true
			continue
		}
		p.Iterations++
		p.Events += total(run, func(r contract.Result) int64 { return r.Events })
		p.Errors += total(run, func(r contract.Result) int64 { return r.Errors })
		sum += latencySum(run)
		elapsed = append(elapsed, Elapsed(run).Seconds())
		throughput = append(throughput, Throughput(run))
		for _, w := range runWarnings(run) {
			warnings[w] = true
		}
	}
	if p.Iterations > 0 {
		p.ElapsedSeconds = elapsedSeconds(elapsed)
		p.EventsPerSecond = spread(throughput)
		p.LatencyMicros = latency(merged, sum)
		if percent := spreadPercent(throughput); percent > float64(maxSpreadPercent) {
			warnings[fmt.Sprintf("unstable: throughput spreads by %.0f %% over the iterations, more than %d %%", percent, maxSpreadPercent)] = true
		}
	}
	p.Warnings = slices.Sorted(maps.Keys(warnings))
	p.Warnings = p.Warnings[:min(len(p.Warnings), maxWarnings)]
	return p
}

// Elapsed is the duration of a run: that of its slowest replica, as all start
// together.
func Elapsed(run Envelope) time.Duration {
	longest := int64(1) // the divisor of throughput
	for _, r := range run.Records {
		longest = max(longest, r.Result.ElapsedNanos)
	}
	return time.Duration(longest)
}

// Throughput is the number of successful events per second of a run.
func Throughput(run Envelope) float64 {
	events := total(run, func(r contract.Result) int64 { return r.Events })
	return float64(events) / Elapsed(run).Seconds()
}

func total(run Envelope, of func(contract.Result) int64) (n int64) {
	for _, r := range run.Records {
		n += of(r.Result)
	}
	return n
}

func latencySum(run Envelope) (nanos int64) {
	for _, r := range run.Records {
		for _, op := range r.Operations {
			nanos += op.SumNanos
		}
	}
	return nanos
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

// mergeInto adds a run's latencies to a histogram: all of them or, with an error, none.
func mergeInto(h *hdrhistogram.Histogram, run Envelope) error {
	var parts []*hdrhistogram.Histogram
	for _, r := range run.Records {
		for _, op := range r.Operations {
			if op.Count == 0 {
				continue
			}
			part, err := decodeHistogram(op)
			if err != nil {
				return err
			}
			parts = append(parts, part)
		}
	}
	for _, part := range parts {
		h.Merge(part) // its range is within h's, so nothing is dropped
	}
	return nil
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
	if median(v) == 0 {
		return 0
	}
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
