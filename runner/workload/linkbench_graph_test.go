package workload

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"dbbench.dev/operator/runner/contract"
)

func TestOutDegreeAt(t *testing.T) {
	for _, tt := range []struct {
		u    float64
		want int64
	}{
		{0, 0}, {0.4533, 0}, {0.4534, 1}, {0.7746, 1}, {0.7747, 2}, {0.98537, 11}, {0.98538, 12},
		{0.9902687903, 15}, {0.99, 15}, {0.999, 264}, {0.9999, 6051}, {1, 961963},
	} {
		got := outDegreeAt(tt.u)
		// Between its points the table is not the empirical distribution.
		if math.Abs(float64(got-tt.want)) > 0.06*float64(tt.want) {
			t.Errorf("the out-degree at %v is %d, want %d", tt.u, got, tt.want)
		}
	}
	for i := range 1_000_000 {
		if a, b := outDegreeAt(float64(i)/1e6), outDegreeAt(float64(i+1)/1e6); a > b {
			t.Fatalf("the out-degree at %d is %d, and then %d", i, a, b)
		}
	}
}

// graphOf is that of so many nodes as the tool loads it.
func graphOf(nodes int64) *linkBench {
	opts := linkBenchOptions()
	opts.MaxID = opts.StartID + nodes
	return newLinkBench(opts)
}

// TestSmallGraphsHaveManyLinks: one node has nearly a million links, however few there
// are. The numbers are the tool's, from its full table of out-degrees.
func TestSmallGraphsHaveManyLinks(t *testing.T) {
	for _, tt := range []struct {
		nodes   int64
		want    float64
		percent float64
	}{
		{1000, 964e3, 0.2}, {10_000, 995e3, 1}, {100_000, 1.37e6, 2}, {1_000_000, 5.25e6, 3}, {10_000_000, 44e6, 3},
	} {
		links, counts := graphOf(tt.nodes).expected()
		if math.Abs(float64(links)-tt.want) > tt.want*tt.percent/100 {
			t.Errorf("%d nodes have %d links, want %.0f ± %v %%", tt.nodes, links, tt.want, tt.percent)
		}
		// 45 % of the nodes have no links, 32 % have one, all others links of both types.
		if want := float64(tt.nodes) * (0.3213 + 2*0.2254); math.Abs(float64(counts)-want) > want/100 {
			t.Errorf("%d nodes have %d counts, want %.0f", tt.nodes, counts, want)
		}
	}
}

func TestExpectedIsTheSum(t *testing.T) {
	for _, types := range []int32{1, 2, 3, 7} {
		for _, bug := range []bool{true, false} {
			for _, most := range []int64{0, 1, 3, 500} {
				opts := linkBenchOptions()
				opts.StartID, opts.MaxID, opts.LinkTypes, opts.LeftoverBug, opts.NLinksMax = 77, 4077, types, bug, most
				w := newLinkBench(opts)
				var links, counts, degrees int64
				for id := opts.StartID; id < opts.MaxID; id++ {
					degree := w.graph.degree(id)
					degrees += degree
					links += w.graph.loaded(degree)
					for linkType := range int64(types) {
						counts += min(w.graph.ofType(degree, linkType), 1)
					}
				}
				gotLinks, gotCounts := w.expected()
				if gotLinks != links || gotCounts != counts {
					t.Errorf("%d types, %v, %d: expected %d links and %d counts, want %d and %d", types, bug, most, gotLinks, gotCounts, links, counts)
				}
				if !bug && links != degrees {
					t.Errorf("%d types: nodes of %d links are loaded with %d", types, degrees, links)
				}
			}
		}
	}
}

// TestLeftoverBug: with two types the tool loads 4.37 links to a node of 4.10.
func TestLeftoverBug(t *testing.T) {
	const nodes = 50_000_000 // so many that the largest has a small share
	mean := func(bug bool) float64 {
		opts := linkBenchOptions()
		opts.MaxID, opts.LeftoverBug = nodes+1, bug
		links, _ := newLinkBench(opts).expected()
		return float64(links) / nodes
	}
	with, without := mean(true), mean(false)
	if math.Abs(with-4.371) > 0.1 || math.Abs(without-4.097) > 0.1 {
		t.Errorf("a node has %.3f links with the bug, %.3f without, want 4.371 and 4.097", with, without)
	}
}

func TestShuffleIsABijection(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, 63, 64, 65, 1000, 12345} {
		s := newShuffle(n, linkBenchSeed)
		seen, moved := make([]bool, n), 0
		for i := range n {
			p := s.place(i)
			if p < 0 || p >= n || seen[p] {
				t.Fatalf("of %d: %d goes to %d", n, i, p)
			}
			seen[p] = true
			if s.inverse(p) != i {
				t.Fatalf("of %d: %d goes to %d and comes back as %d", n, i, p, s.inverse(p))
			}
			if p != i {
				moved++
			}
		}
		if n >= 1000 && moved < int(n)*99/100 {
			t.Errorf("of %d only %d have moved", n, moved)
		}
	}
	large := newShuffle(1<<40, linkBenchNodeSeed)
	for i := range int64(1000) {
		if p := large.place(i << 30); large.inverse(p) != i<<30 {
			t.Fatalf("%d goes to %d and does not come back", i<<30, p)
		}
	}
}

// TestShufflesSpread: the first tenth of the ranks lies evenly over the ids, and two
// shuffles have no more in common than chance gives.
func TestShufflesSpread(t *testing.T) {
	const n = 100_000
	a, b := newShuffle(n, linkBenchSeed), newShuffle(n, linkBenchUncorrelatedSeed)
	var tenths [10]int
	inBoth := 0
	for i := range int64(n / 10) {
		tenths[a.place(i)*10/n]++
		if b.inverse(a.place(i)) < n/10 {
			inBoth++
		}
	}
	for i, count := range append(tenths[:], inBoth) {
		if count < 850 || count > 1150 {
			t.Errorf("%d: %d of 10000 in a tenth, want about 1000", i, count)
		}
	}
}

func TestQuantileZipf(t *testing.T) {
	const draws = 1_000_000
	for _, shape := range []float64{0.606, 0.741, 0.8} {
		for _, n := range []int64{1, 2, 3, 1000, 1_000_000} {
			t.Run(fmt.Sprint(shape, " ", n), func(t *testing.T) {
				z := newQuantileZipf(n, shape)
				rng := rand.New(rand.NewPCG(1, 2))
				var first, tenth float64
				for range draws {
					r := z.rank(rng)
					if r < 0 || r >= n {
						t.Fatalf("drew rank %d of %d", r, n)
					}
					if r == 0 {
						first++
					}
					if r < (n+9)/10 {
						tenth++
					}
				}
				total := harmonic(n, shape)
				if want := draws / total; math.Abs(first-want) > 5*math.Sqrt(want) {
					t.Errorf("the first rank came %.0f times, want %.0f", first, want)
				}
				// The quantile is an approximation.
				if want := draws * harmonic((n+9)/10, shape) / total; math.Abs(tenth-want) > 0.02*want {
					t.Errorf("the first tenth came %.0f times, want %.0f", tenth, want)
				}
			})
		}
	}
}

func TestHarmonicBeyondItsTerms(t *testing.T) {
	const n = 3 * exactHarmonic
	var want float64
	for k := 1; k <= n; k++ {
		want += math.Pow(float64(k), -0.8)
	}
	if got := harmonic(n, 0.8); math.Abs(got-want) > 1e-6*want {
		t.Errorf("the sum is %v, want %v", got, want)
	}
}

func TestDataOfLinksAndNodes(t *testing.T) {
	w := newLinkBench(linkBenchOptions())
	for _, tt := range []struct {
		name                 string
		g                    *dataGenerator
		median, mean         float64 // lognormal: mean = median * sqrt(e)
		low, end             byte
		largest              int
		leastRatio, mayRatio float64 // compressed to uncompressed
	}{
		{"links", w.linkData, 8, 13.2, 32, 100, 254, 0.2, 0.75},
		{"nodes", w.nodeData, 128, 211, 50, 220, 1<<20 - 1, 0.55, 0.9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			const draws = 50_000
			var all, data []byte
			below := 0
			for range draws {
				data = tt.g.next(rng, data)
				if len(data) > tt.largest {
					t.Fatalf("data of %d bytes", len(data))
				}
				if float64(len(data)) < tt.median {
					below++
				}
				all = append(all, data...)
			}
			for _, b := range all {
				if b < tt.low || b >= tt.end {
					t.Fatalf("byte %d is not in %d to %d", b, tt.low, tt.end)
				}
			}
			if mean := float64(len(all)) / draws; math.Abs(mean-tt.mean) > 0.03*tt.mean {
				t.Errorf("data has %.1f bytes in the mean, want %.1f", mean, tt.mean)
			}
			if share := float64(below) / draws; math.Abs(share-0.5) > 0.06 {
				t.Errorf("%.2f of the data are shorter than the median", share)
			}
			if r := compressed(t, all) / float64(len(all)); r < tt.leastRatio || r > tt.mayRatio {
				t.Errorf("data compresses to %.2f, want %.2f to %.2f", r, tt.leastRatio, tt.mayRatio)
			} else {
				t.Logf("compresses to %.2f", r)
			}
		})
	}
	none := newDataGenerator(rand.New(rand.NewPCG(1, 1)), 0, contract.MaxLinkData, 32, 100, 0.225)
	if data := none.next(rand.New(rand.NewPCG(1, 1)), nil); len(data) != 0 {
		t.Errorf("a median of 0 gives %d bytes", len(data))
	}
}

func compressed(t *testing.T, b []byte) float64 {
	t.Helper()
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return float64(out.Len())
}

func TestGeometric(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const draws = 200_000
	sum, ones := 0, 0
	for range draws {
		n := geometric(rng, getProbability, mostLinks)
		if n < 1 || n > mostLinks {
			t.Fatalf("drew %d", n)
		}
		sum += n
		if n == 1 {
			ones++
		}
	}
	if mean := float64(sum) / draws; math.Abs(mean-1/getProbability) > 0.02 {
		t.Errorf("the mean is %.3f, want %.3f", mean, 1/getProbability)
	}
	if share := float64(ones) / draws; math.Abs(share-getProbability) > 0.01 {
		t.Errorf("%.3f are 1, want %.3f", share, getProbability)
	}
}

func BenchmarkLinkBenchDraw(b *testing.B) {
	c := graphOf(10_000_000).NewClient(0, 1).(*linkBenchClient)
	b.ReportAllocs()
	for b.Loop() {
		c.draw()
	}
}
