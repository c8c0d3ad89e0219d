package results

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// TestMergeIsExact: whatever the values, and whichever replica has them, the merged
// histogram is that of all values.
func TestMergeIsExact(t *testing.T) {
	const replicas = 8
	exact := func(seed uint64, n uint16) bool {
		random := rand.New(rand.NewPCG(seed, 1))
		all := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
		run := Envelope{Records: make([]contract.Record, replicas)}
		parts := make([]*hdrhistogram.Histogram, replicas)
		sums := make([]int64, replicas)
		for i := range parts {
			parts[i] = hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
		}
		for range int(n)%5000 + 1 {
			v := int64(math.Pow(10, 3+9*random.Float64())) // 1 µs to 1000 s
			i := random.IntN(replicas)
			if all.RecordValue(v) != nil || parts[i].RecordValue(v) != nil {
				t.Fatal("out of range")
			}
			sums[i] += v
		}
		var sum int64
		for i, h := range parts {
			text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			sum += sums[i]
			run.Records[i] = contract.Record{Operations: []contract.Operation{{Name: "x", Count: h.TotalCount(), SumNanos: sums[i], Histogram: string(text)}}}
		}
		decoded, err := decodeHistograms(run)
		if err != nil {
			t.Fatal(err)
		}
		merged := merge(decoded)
		for _, q := range []float64{0, 1, 50, 90, 95, 99, 99.9, 99.99, 100} {
			if merged.ValueAtQuantile(q) != all.ValueAtQuantile(q) {
				t.Logf("p%g: %d of the merged, %d of all", q, merged.ValueAtQuantile(q), all.ValueAtQuantile(q))
				return false
			}
		}
		mean := newLatency(merged, latencySum(run)).Mean
		return merged.TotalCount() == all.TotalCount() && merged.Max() == all.Max() && mean == sum/all.TotalCount()
	}
	if err := quick.Check(exact, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

// TestMergeOfGeometries: histograms of other make are merged within their precision.
func TestMergeOfGeometries(t *testing.T) {
	a, b := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3), hdrhistogram.New(1, time.Second.Nanoseconds(), 2)
	_, _ = a.RecordValue(5e6), b.RecordValue(1e6)
	m := merge([]*hdrhistogram.Histogram{a, b})
	if m.TotalCount() != 2 || math.Abs(float64(m.Max())/5e6-1) > 0.001 || math.Abs(float64(m.Min())/1e6-1) > 0.01 {
		t.Errorf("%d values from %d to %d", m.TotalCount(), m.Min(), m.Max())
	}
}

func TestBins(t *testing.T) {
	h := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
	for _, micros := range []int64{100, 100, 1000} {
		_ = h.RecordValue(micros * 1000)
	}
	b := bins(h)
	if len(b) != binsPerDecade+1 || b[0].Count != 2 || b[len(b)-1].Count != 1 {
		t.Errorf("%+v", b)
	}
	for i, bin := range b[1:] {
		if bin.UpToNanos <= b[i].UpToNanos {
			t.Errorf("bin %d: %+v", i, b)
		}
	}
}

func TestCompareSamples(t *testing.T) {
	for _, tc := range []struct {
		name        string
		base, value []float64
		verdict     string
		ratio, p    float64
		low, high   float64
		confidence  float64
		warns       string
	}{
		{"faster", []float64{100, 101, 102, 103}, []float64{120, 121, 122, 123}, Faster, 121.5 / 101.5, 2.0 / 70, 120.0 / 103, 123.0 / 100, 1 - 2.0/70, ""},
		{"slower", []float64{120, 121, 122, 123}, []float64{100, 101, 102, 103}, Slower, 101.5 / 121.5, 2.0 / 70, 100.0 / 123, 103.0 / 120, 1 - 2.0/70, ""},
		{"alike", []float64{100, 102, 104, 106}, []float64{101, 103, 105, 107}, NoDifference, 104.0 / 103, 0.685714, 101.0 / 106, 107.0 / 100, 1 - 2.0/70, ""},
		{"three are too few", []float64{100, 101, 102}, []float64{200, 201, 202}, TooFew, 201.0 / 101, 0.1, 200.0 / 102, 202.0 / 100, 0.9, "need >= 4 samples"},
		{"one each", []float64{100}, []float64{200}, TooFew, 2, 1, 0, 0, 0, "need >= 4 samples"},
		{"all equal", []float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, NoDifference, 1, 1, 1, 1, 1 - 2.0/70, "all samples are equal"},
		{"nothing to divide by", []float64{0, 0, 0, 0}, []float64{5, 6, 7, 8}, Faster, 0, 0.028571, 0, 0, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := compareSamples(tc.base, tc.value, true)
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 1e-5 {
					t.Errorf("%s is %g, want %g", what, got, want)
				}
			}
			near("ratio", c.Ratio, tc.ratio)
			near("p", c.P, tc.p)
			near("confidence", c.Confidence, tc.confidence)
			if c.Interval != nil {
				near("low", c.Interval.Low, tc.low)
				near("high", c.Interval.High, tc.high)
			} else if tc.confidence > 0 {
				t.Error("no interval")
			}
			if c.Verdict != tc.verdict {
				t.Errorf("verdict %q, want %q", c.Verdict, tc.verdict)
			}
			if text := strings.Join(c.Warnings, "; "); !strings.Contains(text, tc.warns) {
				t.Errorf("warnings %q, want %q", text, tc.warns)
			}
		})
	}
}

// TestIntervalRank holds the ranks to the table of the Mann-Whitney distribution
// (Hollander and Wolfe, table A.6): the interval's rank is the greatest at which its
// confidence is 95 %.
func TestIntervalRank(t *testing.T) {
	for _, tc := range []struct{ n1, n2, k int }{{3, 3, 1}, {4, 4, 1}, {5, 5, 3}, {8, 8, 14}, {10, 10, 24}} {
		if k, _ := intervalRank(tc.n1, tc.n2); k != tc.k {
			t.Errorf("of %d and %d values: rank %d, want %d", tc.n1, tc.n2, k, tc.k)
		}
	}
	// Beyond the exact distribution the normal one takes over without a jump.
	k, confidence := intervalRank(51, 50)
	if approx := 51*50/2 - 1.96*math.Sqrt(51*50*102/12.0); math.Abs(float64(k)-approx) > 2 || confidence < confidenceLevel {
		t.Errorf("rank %d with %g, about %g expected", k, confidence, approx)
	}
}

// TestIntervalCovers: of intervals of 95 % so many contain the true ratio.
func TestIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	const trials, n, truth = 2000, 6, 1.25
	covered := 0
	for range trials {
		base, value := make([]float64, n), make([]float64, n)
		for i := range n {
			base[i], value[i] = math.Exp(0.1*random.NormFloat64()), truth*math.Exp(0.1*random.NormFloat64())
		}
		if i, _ := ratioInterval(base, value); i.Low <= truth && truth <= i.High {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.94 {
		t.Errorf("%.3f of the intervals contain the ratio", share)
	}
}

// replica is a record with so many events in each second of its run.
func replica(start time.Duration, perSecond ...int64) contract.Record {
	r := contract.Record{Result: contract.Result{
		MeasureStartUnixNanos: start.Nanoseconds(), ElapsedNanos: int64(len(perSecond)) * int64(time.Second),
	}}
	for i, n := range perSecond {
		r.Result.Events += n
		r.Series = append(r.Series, contract.Interval{StartNanos: int64(i) * int64(time.Second), WidthNanos: int64(time.Second), Events: n})
	}
	return r
}

func TestCommonWindow(t *testing.T) {
	if CommonWindow([]contract.Record{replica(0, 1)}) != nil {
		t.Error("one replica has nothing in common")
	}
	// The second starts half a second late; the first is done a second before it, and
	// the second is faster from then on.
	w := CommonWindow([]contract.Record{replica(10*time.Second, 100, 100, 100), replica(10500*time.Millisecond, 100, 100, 100, 400)})
	if w.StartUnixNanos != int64(10500*time.Millisecond) || w.WidthNanos != int64(2500*time.Millisecond) || w.Events != 250+250 {
		t.Errorf("%+v", w)
	}
	run := Envelope{Window: w}
	if got := throughput(run); got != 200 {
		t.Errorf("%g events a second, want 200", got)
	}
	// Without a series the events of a run are taken as even.
	bare := replica(10*time.Second, 100, 100)
	bare.Series = nil
	if w := CommonWindow([]contract.Record{bare, replica(11*time.Second, 10, 10)}); w.WidthNanos != 1e9 || w.Events != 110 {
		t.Errorf("%+v", w)
	}
	if w := CommonWindow([]contract.Record{replica(0, 1), replica(time.Minute, 1)}); w.WidthNanos != 0 || w.Events != 0 {
		t.Errorf("not at the same time: %+v", w)
	}
}

func TestGeneratorWarnings(t *testing.T) {
	usage := func(u contract.RunnerUsage) func(*Envelope) {
		return func(e *Envelope) { e.Records[0].Environment.Runner = u }
	}
	busy := int64(950 * time.Millisecond)
	for _, tc := range []struct {
		name   string
		change func(*Envelope)
		says   string
	}{
		{"one of two processors", usage(contract.RunnerUsage{GOMAXPROCS: 2, CPUUserNanos: busy}), ""},
		{"the only processor", usage(contract.RunnerUsage{GOMAXPROCS: 1, CPUUserNanos: busy - 1e8, CPUSystemNanos: 1e8}), "95 % of its processors"},
		{"half a processor", usage(contract.RunnerUsage{GOMAXPROCS: 2, Cores: 2, CPULimitMilli: 500, CPUUserNanos: busy / 2}), "95 % of its processors"},
		{"throttled", usage(contract.RunnerUsage{GOMAXPROCS: 1, ThrottledNanos: 2e7}), "throttled by its CPU limit for 2 %"},
		{"hardly throttled", usage(contract.RunnerUsage{GOMAXPROCS: 1, ThrottledNanos: 5e6}), ""},
		{"dropped", func(e *Envelope) { e.Records[0].Result.Dropped = 7 }, "7 arrivals could not be started"},
		{"its own", func(e *Envelope) { e.Records[0].Result.Warnings = []string{"3 latencies were beyond an hour"} }, "3 latencies"},
		{"skew", func(e *Envelope) {
			late := e.Records[0]
			late.Result.MeasureStartUnixNanos += 5e7
			e.Records = append(e.Records, late)
		}, "started apart, by up to 5.0 %"},
		{"apart", func(e *Envelope) { e.Window = &Window{WidthNanos: 5e8, Events: 1} }, "together for 50 %"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := envelope(t, "p0001", 1, time.Second, 1)
			tc.change(&e)
			text := strings.Join(Points([]Envelope{e}, nil, 10)[0].Warnings, "\n")
			if (text == "") != (tc.says == "") || !strings.Contains(text, tc.says) {
				t.Errorf("warnings %q, want %q", text, tc.says)
			}
		})
	}
	unstable := Points([]Envelope{envelope(t, "p0001", 1, time.Second, 1), envelope(t, "p0001", 2, 2*time.Second, 1)}, nil, 10)
	if w := unstable[0].Warnings; len(w) != 1 || !strings.Contains(w[0], "unstable: throughput spreads by 67 %") {
		t.Errorf("warnings: %q", w)
	}
}

// measured is a point with these throughputs, and latencies of so many milliseconds.
func measured(target, clients string, millis int64, perSecond ...float64) Point {
	p := Point{
		ID: "p" + clients, Target: target, Parameters: v1alpha1.Parameters{"load.clients": apiextensionsv1.JSON{Raw: []byte(clients)}},
		Events: 1000, Errors: 10, Attempts: 1010, EventsPerSecond: newStatistic(perSecond), ElapsedSeconds: &Elapsed{Average: 2, Minimum: 1, Maximum: 3},
		LatencyNanos: &Latency{Mean: millis * 1e6, P50: millis * 1e6, P90: millis * 2e6, P95: millis * 3e6, P99: millis * 4e6, P999: millis * 5e6, Max: millis * 6e6},
	}
	for i, v := range perSecond {
		p.Iterations = append(p.Iterations, Iteration{Iteration: int32(i + 1), EventsPerSecond: v, ElapsedSeconds: 2, MeanNanos: millis * 1e6, P99Nanos: millis * 4e6})
	}
	return p
}

func TestCompareTargets(t *testing.T) {
	points := []Point{
		measured("mysql", "1", 5, 100, 101, 102, 103), measured("mariadb", "1", 4, 120, 121, 122, 123),
		measured("mysql", "8", 5, 100, 101), {ID: "p8", Target: "mariadb", Parameters: measured("", "8", 5, 1).Parameters, Failed: 3}, measured("mariadb", "16", 5, 1),
	}
	all := CompareTargets(points, []string{"mysql", "mariadb"})
	if len(all) != 3 {
		t.Fatalf("%d comparisons: %+v", len(all), all)
	}
	if c := all[0]; c.Against != "mysql" || c.Target != "mariadb" || c.Metric != MetricThroughput || c.Verdict != Faster || c.String() != "1.20 [1.17, 1.23] p=0.029 faster" {
		t.Errorf("%+v: %s", c, c)
	}
	if c := all[2]; c.Metric != MetricLatencyP99 || c.Base != 20e6 || c.Value != 16e6 || c.Verdict != Faster {
		t.Errorf("%+v", c)
	}
	if got := CompareTargets(points, []string{"mysql"}); got != nil {
		t.Errorf("one target: %+v", got)
	}
}

func TestCompareBaseline(t *testing.T) {
	before := NewBaseline("execution 1", []Point{measured("mysql", "1", 5, 100, 101, 102, 103)})
	now := []Point{measured("mysql", "1", 5, 90, 91, 92, 93), measured("mysql", "2", 5, 90, 91, 92, 93)}
	all, missing := CompareBaseline(now, before)
	if len(all) != 3 || missing != 1 || all[0].Verdict != Slower || all[0].Against != AgainstBaseline || all[1].Verdict != NoDifference {
		t.Errorf("%d missing, %+v", missing, all)
	}
	if all, missing := CompareBaseline(now, nil); all != nil || missing != 0 {
		t.Error("without a baseline there is nothing to compare")
	}
}
