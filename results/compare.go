package results

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"

	"dbbench.dev/operator/api/v1alpha1"
)

// The words of a comparison.
const (
	Faster          = "faster"
	Slower          = "slower"
	NoDifference    = "no significant difference"
	TooFew          = "too few iterations for a p-value"
	confidenceLevel = 0.95
)

// AgainstBaseline is what Comparison.Against says where it is not the name of a target.
const AgainstBaseline = "Baseline"

// Comparison is a metric of a point held against that of another, over the iterations
// of both.
type Comparison struct {
	Point      string              `json:"point"`
	Target     string              `json:"target"`
	Parameters v1alpha1.Parameters `json:"parameters,omitempty"`
	// Against is the name of a target, or Baseline.
	Against string          `json:"against"`
	Metric  v1alpha1.Metric `json:"metric"`
	// Base and Value are medians over the iterations, in events per second or
	// nanoseconds; Ratio is Value / Base.
	Base  float64 `json:"base"`
	Value float64 `json:"value"`
	Ratio float64 `json:"ratio"`
	// Interval holds the ratio with a confidence that Confidence tells, which is less than
	// 0.95 where the iterations are too few; nil where there is none.
	Interval   *Interval `json:"interval,omitempty"`
	Confidence float64   `json:"confidence,omitempty"`
	// P is the p-value of the Mann-Whitney U test: how likely it is that values of one
	// distribution differ as much. N1 and N2 are the iterations of base and value.
	P  float64 `json:"p"`
	N1 int     `json:"n1"`
	N2 int     `json:"n2"`
	// Verdict is faster, slower, no significant difference, or too few iterations for a
	// p-value.
	Verdict  string   `json:"verdict"`
	Warnings []string `json:"warnings,omitempty"`
}

// Interval is a confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// compared are the metrics of a comparison, and how an iteration has them.
var compared = []struct {
	metric     v1alpha1.Metric
	of         func(Iteration) float64
	moreIsGood bool
}{
	{MetricThroughput, func(i Iteration) float64 { return i.EventsPerSecond }, true},
	{MetricLatencyMean, func(i Iteration) float64 { return float64(i.MeanNanos) }, false},
	{MetricLatencyP99, func(i Iteration) float64 { return float64(i.P99Nanos) }, false},
}

// CompareTargets holds every point of the second and later targets against the same
// point of the first.
func CompareTargets(points []Point, targets []string) []Comparison {
	if len(targets) < 2 {
		return nil
	}
	first := map[string]Point{}
	for _, p := range points {
		if p.Target == targets[0] {
			first[p.ParametersKey()] = p
		}
	}
	var all []Comparison
	for _, p := range points {
		if base, ok := first[p.ParametersKey()]; ok && p.Target != targets[0] {
			all = append(all, Compare(base, p, targets[0])...)
		}
	}
	return all
}

// CompareBaseline holds every point against the same point of the baseline. missing
// counts those that the baseline does not have.
func CompareBaseline(points []Point, b *Baseline) (all []Comparison, missing int) {
	if b == nil {
		return nil, 0
	}
	for _, p := range points {
		base, ok := b.find(p)
		if !ok {
			missing++
			continue
		}
		all = append(all, Compare(base, p, AgainstBaseline)...)
	}
	return all, missing
}

// Compare holds a point against another: a comparison for each metric, and none where
// one of them has no iteration.
func Compare(base, p Point, against string) []Comparison {
	if len(base.Iterations) == 0 || len(p.Iterations) == 0 {
		return nil
	}
	var all []Comparison
	for _, m := range compared {
		c := compareSamples(base.values(m.of), p.values(m.of), m.moreIsGood)
		c.Point, c.Target, c.Parameters, c.Against, c.Metric = p.ID, p.Target, p.Parameters, against, m.metric
		all = append(all, c)
	}
	return all
}

func compareSamples(base, value []float64, moreIsGood bool) Comparison {
	s1 := benchmath.NewSample(base, &benchmath.DefaultThresholds)
	s2 := benchmath.NewSample(value, &benchmath.DefaultThresholds)
	test := benchmath.AssumeNothing.Compare(s1, s2)
	c := Comparison{
		Base: median(base), Value: median(value), P: test.P, N1: len(base), N2: len(value),
	}
	if c.Base > 0 {
		c.Ratio = c.Value / c.Base
		c.Interval, c.Confidence = ratioInterval(base, value)
	}
	for _, w := range test.Warnings {
		c.Warnings = append(c.Warnings, w.Error())
	}
	switch {
	case leastP(c.N1, c.N2) > test.Alpha:
		c.Verdict = TooFew
	case test.P > test.Alpha:
		c.Verdict = NoDifference
	case (c.Value > c.Base) == moreIsGood:
		c.Verdict = Faster
	default:
		c.Verdict = Slower
	}
	return c
}

// leastP is the least p-value that samples of these sizes can give: two of all the ways
// to order them put all of one before all of the other.
func leastP(n1, n2 int) float64 {
	ways := 1.0
	for i := 1; i <= n2; i++ {
		ways = ways * float64(n1+i) / float64(i)
	}
	return min(2/ways, 1)
}

// ratioInterval is the confidence interval of the ratio of two distributions that
// belongs to the Mann-Whitney U test: an order statistic of all pairwise ratios from
// either end (Hodges and Lehmann 1963; Hollander and Wolfe, Nonparametric Statistical
// Methods, section 4.3, for logarithms). Where so few values allow no interval of the
// confidence that is wanted, it is that of all ratios, and says what its confidence is.
func ratioInterval(base, value []float64) (*Interval, float64) {
	ratios := make([]float64, 0, len(base)*len(value))
	for _, b := range base {
		if b <= 0 {
			return nil, 0
		}
		for _, v := range value {
			ratios = append(ratios, v/b)
		}
	}
	slices.Sort(ratios)
	k, confidence := intervalRank(len(base), len(value))
	if confidence <= 0 {
		return nil, 0
	}
	return &Interval{Low: ratios[k-1], High: ratios[len(ratios)-k]}, confidence
}

// exactLimit is the product of sample sizes up to which the distribution of U is
// computed; beyond it the normal one is as good.
const exactLimit = 2500

type rank struct {
	k          int
	confidence float64
}

var ranks sync.Map // of rank by sample sizes: they cost some time

// intervalRank is the rank of the lowest pairwise ratio within the interval, from 1,
// and the interval's confidence.
func intervalRank(n1, n2 int) (int, float64) {
	key := [2]int{n1, n2}
	if known, ok := ranks.Load(key); ok {
		r := known.(rank)
		return r.k, r.confidence
	}
	u := stats.UDist{N1: n1, N2: n2}
	below := u.CDF // the probability that U is at most so much
	if n1*n2 > exactLimit {
		m := float64(n1 * n2)
		normal := stats.NormalDist{Mu: m / 2, Sigma: math.Sqrt(m * float64(n1+n2+1) / 12)}
		below = func(x float64) float64 { return normal.CDF(x + 0.5) }
	}
	r := rank{k: 1, confidence: 1 - 2*below(0)}
	for step := n1 * n2 / 2; step > 0; {
		k := r.k + step
		if c := 1 - 2*below(float64(k-1)); k <= n1*n2/2 && c >= confidenceLevel {
			r = rank{k, c}
		} else {
			step /= 2
		}
	}
	ranks.Store(key, r)
	return r.k, r.confidence
}

// String is the comparison in a phrase, such as "1.08 [1.02, 1.15] p=0.008 faster".
func (c Comparison) String() string {
	text := fmt.Sprintf("%.2f", c.Ratio)
	if i := c.Interval; i != nil {
		text += fmt.Sprintf(" [%.2f, %.2f]", i.Low, i.High)
	}
	return fmt.Sprintf("%s p=%.3f %s", text, c.P, c.Verdict)
}
