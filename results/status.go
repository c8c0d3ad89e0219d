package results

import (
	"slices"
	"strconv"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
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

// Memo remembers the points of earlier summaries, so that a run that has ended costs the
// aggregation of its own point and not of all. Nil remembers nothing. It is not safe for
// concurrent use.
type Memo struct{ points map[pointKey]memory }

type memory struct {
	runs             []Envelope
	maxSpreadPercent int32
	point            Point
}

// Summarise aggregates as many of the points as a status has room for; see Points.
func (m *Memo) Summarise(runs []Envelope, targets []string, maxSpreadPercent int32) Summary {
	g := groupRuns(runs, targets)
	var s Summary
	size := 0
	for _, k := range g.keys {
		status := m.aggregate(k, g.runs[k], maxSpreadPercent).Status()
		if size += sizeOf(status); size > statusBytes {
			s.Truncated = int32(len(g.keys) - len(s.Points))
			break
		}
		s.Points = append(s.Points, status)
	}
	s.Latest = m.latest(runs, g, maxSpreadPercent)
	return s
}

// Summarise does it once, with nothing to remember.
func Summarise(runs []Envelope, targets []string, maxSpreadPercent int32) Summary {
	return (*Memo)(nil).Summarise(runs, targets, maxSpreadPercent)
}

// aggregate is that of the same name, unless the very same runs were aggregated before.
func (m *Memo) aggregate(k pointKey, runs []Envelope, maxSpreadPercent int32) Point {
	if m == nil {
		return aggregate(runs, maxSpreadPercent)
	}
	if old, ok := m.points[k]; ok && old.maxSpreadPercent == maxSpreadPercent && slices.EqualFunc(old.runs, runs, same) {
		return old.point
	}
	p := aggregate(runs, maxSpreadPercent)
	p.Distribution, p.Warnings = nil, slices.Clip(p.Warnings)
	if m.points == nil {
		m.points = map[pointKey]memory{}
	}
	m.points[k] = memory{runs, maxSpreadPercent, p}
	return p
}

// same reports whether two envelopes are copies of one: they share their records.
func same(a, b Envelope) bool {
	return a.Run == b.Run && a.Failure == b.Failure && len(a.Records) == len(b.Records) &&
		(len(a.Records) == 0 || &a.Records[0] == &b.Records[0])
}

func (m *Memo) latest(runs []Envelope, g groups, maxSpreadPercent int32) *v1alpha1.LatestResult {
	runs = slices.DeleteFunc(slices.Clone(runs), func(e Envelope) bool { return e.Failure != nil || e.Lost > 0 })
	if len(runs) == 0 {
		return nil
	}
	last := slices.MaxFunc(runs, func(a, b Envelope) int { return a.Finished.Compare(b.Finished) })
	k := pointKey{last.Point, last.Target}
	p := m.aggregate(k, g.runs[k], maxSpreadPercent)
	if p.EventsPerSecond == nil || p.LatencyNanos == nil {
		return nil
	}
	p99 := time.Duration(p.LatencyNanos.P99).Round(time.Microsecond)
	return &v1alpha1.LatestResult{EventsPerSecond: decimal(p.EventsPerSecond.Median, 3), P99: p99.String()}
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

// Status is the point as a status shows it.
func (p Point) Status() v1alpha1.PointResult {
	s := v1alpha1.PointResult{
		ID: p.ID, Target: p.Target, Parameters: p.Parameters, Clients: p.Clients,
		Iterations: int32(len(p.Iterations)), Failed: p.Failed, Events: p.Events, Errors: p.Errors,
		Verdict: p.Verdict, Warnings: p.Warnings,
	}
	if e := p.ElapsedSeconds; e != nil {
		s.ElapsedSeconds = &v1alpha1.ElapsedSeconds{
			Average: decimal(e.Average, 3), Minimum: decimal(e.Minimum, 3), Maximum: decimal(e.Maximum, 3),
		}
	}
	if t := p.EventsPerSecond; t != nil {
		s.EventsPerSecond = &v1alpha1.Spread{
			Median: decimal(t.Median, 3), Minimum: decimal(t.Minimum, 3), Maximum: decimal(t.Maximum, 3),
		}
	}
	if l := p.LatencyNanos; l != nil {
		s.LatencyMicros = &v1alpha1.Latency{
			Mean: toMicros(l.Mean), P50: toMicros(l.P50), P90: toMicros(l.P90), P95: toMicros(l.P95),
			P99: toMicros(l.P99), P999: toMicros(l.P999), Max: toMicros(l.Max),
		}
	}
	return s
}

func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// toMicros rounds to the nearest microsecond.
func toMicros(nanos int64) int64 { return (nanos + 500) / 1000 }
