package results

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/api/v1alpha1"
)

// Point is what was found at one point on one target, over all its iterations. It is
// an element of points in summary.json; times are in the unit that their name ends with.
type Point struct {
	ID         string              `json:"id"`
	Target     string              `json:"target"`
	Parameters v1alpha1.Parameters `json:"parameters,omitempty"`
	Clients    int32               `json:"clients"`
	// Iterations are those that succeeded; Failed counts the others.
	Iterations []Iteration `json:"iterations,omitempty"`
	Failed     int32       `json:"failed,omitempty"`
	// Events, Errors, Attempts and Dropped are sums over the iterations; see
	// contract.Result.
	Events   int64 `json:"events"`
	Errors   int64 `json:"errors"`
	Attempts int64 `json:"attempts"`
	Dropped  int64 `json:"dropped,omitempty"`
	// ElapsedSeconds and EventsPerSecond are over the iterations, LatencyNanos over all
	// events of all of them; nil where there is none.
	ElapsedSeconds  *Elapsed   `json:"elapsedSeconds,omitempty"`
	EventsPerSecond *Statistic `json:"eventsPerSecond,omitempty"`
	LatencyNanos    *Latency   `json:"latencyNanos,omitempty"`
	// Verdict of the thresholds that apply: Passed, Failed, or empty where none was judged.
	Verdict string `json:"verdict,omitempty"`
	// Warnings are what a reader must know to trust the numbers.
	Warnings []string `json:"warnings,omitempty"`
	// Distribution is for drawing; it is not kept.
	Distribution []Bin `json:"-"`
}

// Iteration is a run that succeeded, in figures.
type Iteration struct {
	Iteration       int32   `json:"iteration"`
	ElapsedSeconds  float64 `json:"elapsedSeconds"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	Events          int64   `json:"events"`
	MeanNanos       int64   `json:"meanNanos"`
	P50Nanos        int64   `json:"p50Nanos"`
	P99Nanos        int64   `json:"p99Nanos"`
	// StartSkewNanos is the time between the first and the last replica's start.
	StartSkewNanos int64 `json:"startSkewNanos,omitempty"`
	// CPUPercent is the load generator's use of the processors that it may use: of the
	// replica that used most.
	CPUPercent float64 `json:"cpuPercent"`
}

// Elapsed is a duration over the iterations as mysqlslap prints it, in seconds.
type Elapsed struct {
	Average float64 `json:"average"`
	Minimum float64 `json:"minimum"`
	Maximum float64 `json:"maximum"`
}

// Statistic is a number over the iterations.
type Statistic struct {
	Median  float64 `json:"median"`
	Minimum float64 `json:"minimum"`
	Maximum float64 `json:"maximum"`
	// SpreadPercent is (maximum - minimum) / median in percent.
	SpreadPercent float64 `json:"spreadPercent"`
}

// Latency holds a latency's mean and percentiles from merged histograms, in nanoseconds.
type Latency struct {
	Mean int64 `json:"mean"`
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P95  int64 `json:"p95"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// Bin counts the latencies above the bin before it and up to UpToNanos.
type Bin struct{ UpToNanos, Count int64 }

// Key tells points apart by what they are, not by their number, which another sweep
// gives to another point: target and parameters.
func (p Point) Key() string { return p.Target + " " + p.ParametersKey() }

// ParametersKey is the same for the same point on any target.
func (p Point) ParametersKey() string {
	key := ""
	for _, path := range slices.Sorted(maps.Keys(p.Parameters)) {
		key += path + "=" + string(p.Parameters[path].Raw) + " "
	}
	return key
}

// Points aggregates runs into points, in the order of their ids, then of targets.
// maxSpreadPercent is the spread of throughput above which a point is called unstable.
func Points(runs []Envelope, targets []string, maxSpreadPercent int32) []Point {
	return slices.Collect(groupRuns(runs, targets).points(maxSpreadPercent))
}

type pointKey struct{ point, target string }

// groups are runs by point and target, less the notes of losses; keys are in order.
type groups struct {
	keys []pointKey
	runs map[pointKey][]Envelope
}

func groupRuns(runs []Envelope, targets []string) groups {
	g := groups{runs: map[pointKey][]Envelope{}}
	for _, r := range runs {
		if r.Lost > 0 {
			continue
		}
		k := pointKey{r.Point, r.Target}
		g.runs[k] = append(g.runs[k], r)
	}
	g.keys = slices.SortedFunc(maps.Keys(g.runs), func(a, b pointKey) int {
		return cmp.Or(cmp.Compare(a.point, b.point), cmp.Compare(slices.Index(targets, a.target), slices.Index(targets, b.target)))
	})
	return g
}

// points makes one after the other, so that who has enough can stop.
func (g groups) points(maxSpreadPercent int32) iter.Seq[Point] {
	return func(yield func(Point) bool) {
		for _, k := range g.keys {
			if !yield(aggregate(g.runs[k], maxSpreadPercent)) {
				return
			}
		}
	}
}

// aggregate makes a point of its iterations.
func aggregate(runs []Envelope, maxSpreadPercent int32) Point {
	slices.SortFunc(runs, func(a, b Envelope) int { return cmp.Compare(a.Iteration, b.Iteration) })
	first := runs[0]
	p := Point{ID: first.Point, Target: first.Target, Parameters: first.Parameters, Clients: first.Clients}
	var parts []*hdrhistogram.Histogram
	var sum float64
	var w warnings
	for _, run := range runs {
		if run.Failure != nil {
			p.Failed++
			continue
		}
		histograms, err := decodeHistograms(run)
		if err != nil {
			// Records are checked before they are stored.
			p.Failed++
			w.add("the stored result of %s was changed: %v", run.Run, err)
			continue
		}
		parts = append(parts, histograms...)
		sum += latencySum(run)
		p.count(run)
		p.Iterations = append(p.Iterations, newIteration(run, merge(histograms)))
		w.addRun(run)
	}
	if len(p.Iterations) > 0 {
		p.summarise(merge(parts), sum)
		w.addSpread(p.EventsPerSecond.SpreadPercent, maxSpreadPercent)
	}
	p.Warnings = w.texts(p)
	return p
}

func (p *Point) count(run Envelope) {
	for _, r := range run.Records {
		p.Events += r.Result.Events
		p.Errors += r.Result.Errors
		p.Attempts += r.Result.Attempts
		p.Dropped += r.Result.Dropped
	}
}

func (p *Point) summarise(h *hdrhistogram.Histogram, sum float64) {
	elapsed := p.values(func(i Iteration) float64 { return i.ElapsedSeconds })
	p.ElapsedSeconds = &Elapsed{Average: mean(elapsed), Minimum: slices.Min(elapsed), Maximum: slices.Max(elapsed)}
	p.EventsPerSecond = newStatistic(p.values(func(i Iteration) float64 { return i.EventsPerSecond }))
	p.LatencyNanos = newLatency(h, sum)
	p.Distribution = bins(h)
}

// values are a number of each iteration.
func (p Point) values(of func(Iteration) float64) []float64 {
	all := make([]float64, len(p.Iterations))
	for i, iteration := range p.Iterations {
		all[i] = of(iteration)
	}
	return all
}

func newIteration(run Envelope, h *hdrhistogram.Histogram) Iteration {
	i := Iteration{
		Iteration: run.Iteration, ElapsedSeconds: elapsed(run).Seconds(), EventsPerSecond: throughput(run),
		StartSkewNanos: StartSkew(run.Records), CPUPercent: cpuPercent(run.Records),
	}
	for _, r := range run.Records {
		i.Events += r.Result.Events
	}
	if l := newLatency(h, latencySum(run)); l != nil {
		i.MeanNanos, i.P50Nanos, i.P99Nanos = l.Mean, l.P50, l.P99
	}
	return i
}

// latencySum is in nanoseconds. It is no int64: the waiting of many clients over some
// days would not fit.
func latencySum(run Envelope) (nanos float64) {
	for _, r := range run.Records {
		for _, op := range r.Operations {
			nanos += float64(op.SumNanos)
		}
	}
	return nanos
}

func newStatistic(v []float64) *Statistic {
	s := &Statistic{Median: median(v), Minimum: slices.Min(v), Maximum: slices.Max(v)}
	if s.Median > 0 {
		s.SpreadPercent = 100 * (s.Maximum - s.Minimum) / s.Median
	}
	return s
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// newLatency reads a histogram, nil where it is empty. The sum is exact, which the
// histogram's own mean is not.
func newLatency(h *hdrhistogram.Histogram, sum float64) *Latency {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	q := h.ValueAtPercentilesSlice([]float64{50, 90, 95, 99, 99.9})
	return &Latency{Mean: int64(sum / float64(h.TotalCount())), P50: q[0], P90: q[1], P95: q[2], P99: q[3], P999: q[4], Max: h.Max()}
}
