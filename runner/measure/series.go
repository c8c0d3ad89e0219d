package measure

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
)

const (
	firstWidth   = int64(time.Second)
	maxIntervals = 300
	// Two digits are enough for a curve, and keep 300 histograms below 8 MiB.
	seriesDigits = 2
)

// series is the time series of a run. When it grows beyond maxIntervals, its
// intervals are merged in pairs and become twice as wide, so that a run of any
// length has a series of 150 to 300 intervals.
type series struct {
	width int64
	steps []*step
}

type step struct {
	histogram *hdr.Histogram // nil while there was no event
	errors    int64
	max       int64
}

func newSeries() series { return series{width: firstWidth} }

// at returns the step of the given time since the start of the series.
func (s *series) at(nanos int64) *step {
	for nanos/s.width >= maxIntervals {
		s.halve()
	}
	i := int(nanos / s.width)
	for len(s.steps) <= i {
		s.steps = append(s.steps, &step{})
	}
	return s.steps[i]
}

func (s *series) success(nanos, latency int64) {
	p := s.at(nanos)
	if p.histogram == nil {
		p.histogram = hdr.New(MinLatency, MaxLatency, seriesDigits)
	}
	_ = p.histogram.RecordValue(latency) // the recorder has clamped it
	p.max = max(p.max, latency)
}

func (s *series) failure(nanos int64) { s.at(nanos).errors++ }

func (s *series) halve() {
	merged := s.steps[:0]
	for i := 0; i < len(s.steps); i += 2 {
		p := s.steps[i]
		if i+1 < len(s.steps) {
			p.add(s.steps[i+1])
		}
		merged = append(merged, p)
	}
	clear(s.steps[len(merged):])
	s.steps = merged
	s.width *= 2
}

func (p *step) add(other *step) {
	p.errors += other.errors
	p.max = max(p.max, other.max)
	switch {
	case other.histogram == nil:
	case p.histogram == nil:
		p.histogram = other.histogram
	default:
		p.histogram.Merge(other.histogram)
	}
}

func (s *series) interval(i int) contract.Interval {
	p := s.steps[i]
	out := contract.Interval{StartNanos: int64(i) * s.width, WidthNanos: s.width, Errors: p.errors, MaxNanos: p.max}
	if p.histogram != nil {
		out.Events = p.histogram.TotalCount()
		out.P50Nanos = min(p.histogram.ValueAtQuantile(50), p.max)
		out.P99Nanos = min(p.histogram.ValueAtQuantile(99), p.max)
	}
	return out
}

// latest is the last interval that was complete at the given time.
func (s *series) latest(nanos int64) contract.Interval {
	i := int(nanos/s.width) - 1
	if nanos < 0 || i < 0 || i >= len(s.steps) {
		return contract.Interval{}
	}
	return s.interval(i)
}

// intervals is the series up to end; the last interval ends there.
func (s *series) intervals(end int64) []contract.Interval {
	var out []contract.Interval
	for i := range s.steps {
		interval := s.interval(i)
		if rest := end - interval.StartNanos; rest > 0 {
			interval.WidthNanos = min(interval.WidthNanos, rest)
		}
		out = append(out, interval)
	}
	return out
}
