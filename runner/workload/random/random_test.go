package random

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
)

// defaults are sysbench's.
func defaults(kind Kind) Distribution {
	return Distribution{Kind: kind, Iterations: 12, SpecialPercent: 1, SpecialShare: 75, ParetoH: 0.2, Exponent: 0.8}
}

var kinds = map[string]Kind{
	"uniform": Uniform, "gaussian": Gaussian, "special": Special, "special corrected": SpecialCorrected,
	"pareto": Pareto, "zipfian": Zipfian,
}

const draws = 1_000_000

// counts are how often each value of 1 to n was drawn; index 0 is unused.
func counts(t *testing.T, d Distribution, n int64) []int {
	t.Helper()
	ints := d.Ints(rand.New(rand.NewPCG(1, 2)), 1, n)
	c := make([]int, n+1)
	for range draws {
		v := ints.Next()
		if v < 1 || v > n {
			t.Fatalf("drew %d, which is not in 1 to %d", v, n)
		}
		c[v]++
	}
	return c
}

// share is the percentage of draws from low to high, both included.
func share(c []int, low, high int64) float64 {
	sum := 0
	for v := low; v <= high; v++ {
		sum += c[v]
	}
	return 100 * float64(sum) / draws
}

func TestShares(t *testing.T) {
	const n = 10000
	// Of 1 to 10000 the central 1 % is 4951 to 5050, of which 4951 to 4975 is the lowest
	// quarter.
	for _, tt := range []struct {
		name      string
		kind      Kind
		low, high int64
		want, by  float64
	}{
		{"uniform: the first half", Uniform, 1, n / 2, 50, 0.3},
		{"uniform: the first value", Uniform, 1, 1, 0.01, 0.005},
		{"gaussian: the middle third", Gaussian, n/3 + 1, 2 * n / 3, 95.4, 0.5}, // two standard deviations, 1/12 each
		{"gaussian: below the middle", Gaussian, 1, n / 2, 50, 0.3},
		{"special: the central 1 %", Special, 4951, 5051, 76, 1},
		{"special: the lowest quarter of it", Special, 4951, 4974, 0.3, 0.2},
		{"corrected: the central 1 %", SpecialCorrected, 4951, 5050, 76, 1},
		{"corrected: the lowest quarter of it", SpecialCorrected, 4951, 4975, 19, 0.5},
		{"pareto: the first fifth", Pareto, 1, n / 5, 80, 0.3},
		{"pareto: a fifth of the fifth", Pareto, 1, n / 25, 64, 0.3},
		{"pareto: the first 1 %", Pareto, 1, n / 100, 53, 0.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := share(counts(t, defaults(tt.kind), n), tt.low, tt.high); math.Abs(got-tt.want) > tt.by {
				t.Errorf("%.2f %% of the draws are in %d to %d, want %.2f ± %.2f", got, tt.low, tt.high, tt.want, tt.by)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	const n = 1000
	d := defaults(Special)
	d.SpecialPercent, d.SpecialShare = 10, 50
	if got := share(counts(t, d, n), 451, 551); math.Abs(got-(50+50*0.45)) > 2 {
		t.Errorf("special with 50 %% in 10 %%: %.2f %% are in the band", got)
	}
	d.SpecialShare = 100
	if got := share(counts(t, d, n), 450, 551); got != 100 {
		t.Errorf("special with all in the band: %.2f %% are", got)
	}
	d.SpecialShare = 0
	if got := share(counts(t, d, n), 451, 551); got > 50 {
		t.Errorf("special with none in the band: %.2f %% are", got)
	}
	d = defaults(Pareto)
	d.ParetoH = 0.1
	if got := share(counts(t, d, n), 1, n/10); math.Abs(got-90) > 0.5 {
		t.Errorf("pareto with 0.1: %.2f %% are in the first tenth", got)
	}
	d = defaults(Gaussian)
	d.Iterations = 1
	if got := share(counts(t, d, n), 1, n/4); math.Abs(got-25) > 0.5 {
		t.Errorf("a bell of one value is uniform, but %.2f %% are in the first quarter", got)
	}
}

// TestZipfianIsItsLaw compares each rank with its exact probability.
func TestZipfianIsItsLaw(t *testing.T) {
	for _, exponent := range []float64{0, 0.5, 0.8, 1, 1.5, 3} {
		for _, n := range []int64{1, 2, 10, 1000} {
			t.Run(fmt.Sprint(exponent, " ", n), func(t *testing.T) {
				d := defaults(Zipfian)
				d.Exponent = exponent
				c := counts(t, d, n)
				var sum float64
				for r := int64(1); r <= n; r++ {
					sum += math.Pow(float64(r), -exponent)
				}
				for r := int64(1); r <= n; r++ {
					want := draws * math.Pow(float64(r), -exponent) / sum
					if got := float64(c[r]); math.Abs(got-want) > 5*math.Sqrt(want)+1 {
						t.Errorf("rank %d came %.0f times, want %.0f", r, got, want)
					}
				}
			})
		}
	}
}

func TestNarrowAndWideRanges(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, r := range [][2]int64{{1, 1}, {5, 5}, {0, 1}, {7, 9}, {3, 2}, {1, 1 << 40}} {
				low, high := r[0], max(r[0], r[1])
				ints := defaults(kind).Ints(rand.New(rand.NewPCG(3, 4)), r[0], r[1])
				for range 10000 {
					if v := ints.Next(); v < low || v > high {
						t.Fatalf("drew %d of %d to %d", v, low, high)
					}
				}
			}
		})
	}
}

func TestSeedsDecide(t *testing.T) {
	for name, kind := range kinds {
		first := func(seed uint64) (out [20]int64) {
			ints := defaults(kind).Ints(rand.New(rand.NewPCG(seed, 0)), 1, 1<<30)
			for i := range out {
				out[i] = ints.Next()
			}
			return out
		}
		if one, again, two := first(1), first(1), first(2); one != again || one == two {
			t.Errorf("%s: the values do not depend on the seed alone", name)
		}
	}
}

func TestAppendDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	shape := regexp.MustCompile(`^x[0-9]{11}(-[0-9]{11}){9}$`)
	var digits [10]int
	for range 1000 {
		text := AppendDigits([]byte("x"), rng, 10)
		if !shape.Match(text) {
			t.Fatalf("text %q", text)
		}
		for _, b := range text {
			if b >= '0' && b <= '9' {
				digits[b-'0']++
			}
		}
	}
	for d, n := range digits {
		if n < 10500 || n > 11500 {
			t.Errorf("digit %d came %d times of 110000", d, n)
		}
	}
	if got := string(appendGroup(nil, 42)); got != "00000000042" {
		t.Errorf("leading zeros: %q", got)
	}
}

func TestUniqueDoesNotRepeat(t *testing.T) {
	const clients, each = 3, 300_000
	seen := make(map[uint32]bool, clients*each)
	var low, high int
	for i := range clients {
		u := NewUnique(7, i, clients)
		for range each {
			v := u.Next()
			if seen[v] {
				t.Fatalf("%d came twice", v)
			}
			seen[v] = true
			if v < 1<<31 {
				low++
			} else {
				high++
			}
		}
	}
	if ratio := float64(low) / float64(high); ratio < 0.98 || ratio > 1.02 {
		t.Errorf("%d values are in the lower half, %d in the upper", low, high)
	}
}

// TestPermuteIsOne checks that no image is hit twice, on the numbers around the seams.
func TestPermuteIsOne(t *testing.T) {
	seen := map[uint32]uint32{}
	for _, middle := range []uint32{0, largestPrime / 2, largestPrime} {
		for d := range uint32(2000) {
			x := middle + d - 1000
			if _, done := seen[permute(x)]; done && seen[permute(x)] != x {
				t.Fatalf("%d and %d have the same image", x, seen[permute(x)])
			}
			seen[permute(x)] = x
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, kind := range kinds {
		ints := defaults(kind).Ints(rng, 1, 1_000_000)
		if n := testing.AllocsPerRun(1000, func() { ints.Next() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	buffer := make([]byte, 0, 200)
	u := NewUnique(1, 0, 1)
	if n := testing.AllocsPerRun(1000, func() { AppendDigits(buffer, rng, 10); u.Next() }); n != 0 {
		t.Errorf("texts: %v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	for name, kind := range kinds {
		b.Run(name, func(b *testing.B) {
			ints := defaults(kind).Ints(rand.New(rand.NewPCG(1, 1)), 1, 1_000_000)
			for b.Loop() {
				ints.Next()
			}
		})
	}
}

func BenchmarkAppendDigits(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	buffer := make([]byte, 0, 200)
	for b.Loop() {
		AppendDigits(buffer, rng, 10)
	}
}
