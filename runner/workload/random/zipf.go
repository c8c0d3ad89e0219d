package random

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks 1 to n with a probability in proportion to r^-e, by
// rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate
// variates from monotone discrete distributions", ACM TOMACS 6 (1996), with the
// integral of the hat such that every exponent is allowed, 1 included.
type zipf struct {
	n, e float64
	// low and high are the integral at the ends of the ranks, squeeze the distance
	// below which a rank is accepted without a look at the integral.
	low, high, squeeze float64
}

func newZipf(n, e float64) zipf {
	z := zipf{n: n, e: e}
	z.low, z.high = z.integral(1.5)-1, z.integral(n+0.5)
	z.squeeze = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

func (z *zipf) rank(rng *rand.Rand) float64 {
	for {
		u := z.high + rng.Float64()*(z.low-z.high)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.squeeze || u >= z.integral(k+0.5)-z.density(k) {
			return k
		}
	}
}

// density is x^-e.
func (z *zipf) density(x float64) float64 { return math.Exp(-z.e * math.Log(x)) }

// integral is that of density from 1 to x: (x^(1-e) - 1) / (1-e), or log x where e is 1.
func (z *zipf) integral(x float64) float64 {
	log := math.Log(x)
	return expm1Over((1-z.e)*log) * log
}

// inverse is that of integral.
func (z *zipf) inverse(y float64) float64 {
	// Rounding must not take it out of the logarithm's domain.
	t := max(y*(1-z.e), -1)
	return math.Exp(log1pOver(t) * y)
}

// expm1Over is (exp(x)-1)/x, also near 0.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

// log1pOver is log(1+x)/x, also near 0.
func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(1./2-x/3)
}
