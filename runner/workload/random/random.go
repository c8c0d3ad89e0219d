// Package random draws the values of benchmarks as sysbench does: integers of a range
// by its distributions, texts of digits, and numbers that do not repeat. Nothing in it
// allocates after it was made, or is safe for concurrent use.
package random

import (
	"math"
	"math/rand/v2"
)

// Kind is the shape of a distribution.
type Kind int

// The kinds of distribution over a range [a, b].
const (
	// Uniform gives all values alike.
	Uniform Kind = iota
	// Gaussian is the mean of some uniform values: a bell around the middle.
	Gaussian
	// Special is that of sysbench 1.0. A share of the values lies in a narrow band in
	// the middle, the others form a bell. The number that decides between the two is
	// used again for the place in the band, so that its lower part, in proportion to the
	// bell's share, is hit by the bell alone.
	Special
	// SpecialCorrected, which is also that of sysbench 0.5, hits all of the band alike.
	SpecialCorrected
	// Pareto prefers low values: a fraction 1-h of them lies in the fraction h of the
	// range, and so on within it.
	Pareto
	// Zipfian gives the value of rank r, counted from a, with a probability in
	// proportion to r^-exponent.
	Zipfian
)

// Distribution is a kind with its parameters. Those of other kinds are not looked at.
type Distribution struct {
	Kind Kind
	// Iterations is the number of uniform values that make a bell, 1 or more.
	Iterations int
	// SpecialPercent is the width of the band in percent of the range; SpecialShare the
	// percentage of values that fall into it.
	SpecialPercent, SpecialShare int
	// ParetoH is greater than 0 and less than 1.
	ParetoH float64
	// Exponent is that of Zipfian, 0 or more.
	Exponent float64
}

// Ints draws integers of a range.
type Ints struct {
	rng  *rand.Rand
	low  int64
	n    float64 // number of values
	draw func(*Ints) float64

	iterations int
	perValue   float64 // 1/iterations
	// Special: the share of the bell, and the width and the begin of the band.
	bell, width, begin float64
	power              float64 // of Pareto
	zipf               zipf
}

// Ints returns what draws integers from low to high by the distribution. A range
// without a value is taken for that of low alone.
func (d Distribution) Ints(rng *rand.Rand, low, high int64) *Ints {
	span := max(float64(high-low), 0)
	i := &Ints{rng: rng, low: low, n: span + 1, iterations: d.Iterations, perValue: 1 / float64(d.Iterations)}
	percent := float64(d.SpecialPercent) / 100
	i.bell = 1 - float64(d.SpecialShare)/100
	switch d.Kind {
	case Uniform:
		i.draw = (*Ints).uniform
	case Gaussian:
		i.draw = (*Ints).gaussian
	case Special:
		i.draw = (*Ints).special
		i.width, i.begin = span*percent+1, span/2-span*percent/2
	case SpecialCorrected:
		i.draw = (*Ints).specialCorrected
		i.width, i.begin = max(math.Floor(i.n*percent), 1), math.Floor(i.n/2)-math.Floor(i.n*percent/2)
	case Pareto:
		i.draw = (*Ints).pareto
		i.power = math.Log(d.ParetoH) / math.Log(1-d.ParetoH)
	case Zipfian:
		i.draw = (*Ints).zipfian
		i.zipf = newZipf(i.n, d.Exponent)
	}
	return i
}

// Next draws an integer.
func (i *Ints) Next() int64 {
	// Rounding may reach the end of the range, which is not part of it.
	return i.low + int64(min(i.draw(i), i.n-1))
}

func (i *Ints) uniform() float64 { return i.rng.Float64() * i.n }

// mean is that of some uniform values from 0 to less than 1.
func (i *Ints) mean() float64 {
	var sum float64
	for range i.iterations {
		sum += i.rng.Float64()
	}
	return sum * i.perValue
}

func (i *Ints) gaussian() float64 { return i.mean() * i.n }

func (i *Ints) special() float64 {
	u := i.rng.Float64()
	if u < i.bell && i.n > 1 {
		return i.mean() * (i.n - 1)
	}
	return u*i.width + i.begin
}

func (i *Ints) specialCorrected() float64 {
	if i.rng.Float64() < i.bell {
		return i.mean() * i.n
	}
	return i.rng.Float64()*i.width + i.begin
}

func (i *Ints) pareto() float64 { return math.Pow(i.rng.Float64(), i.power) * i.n }

func (i *Ints) zipfian() float64 { return i.zipf.rank(i.rng) - 1 }
