package workload

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"dbbench.dev/operator/runner/contract"
)

const (
	// linkBenchFirstType is the first type of link; the others follow it.
	linkBenchFirstType = 123456789
	// linkBenchNodeType is the type of all nodes.
	linkBenchNodeType = 2048
)

// Seeds of the shuffles. They are the tool's, and no option: the data that one run has
// loaded is what another must know.
const (
	linkBenchSeed             = 20343988438726021 // of out-degrees, and of accesses that go with them
	linkBenchUncorrelatedSeed = 53238253823453
	linkBenchNodeSeed         = 4766565305853767165
)

// outDegrees is how many links go out of a node of Facebook's graph: the percentage of
// nodes that have so many or fewer. Up to linkBenchLastStep they are all the degrees
// there are; between those that follow degrees are spread evenly.
var outDegrees = []struct{ degree, cumulative float64 }{
	{0, 45.33160573}, {1, 77.46259112}, {2, 86.95805953}, {3, 91.99305428}, {4, 94.45079910}, {5, 95.82807169},
	{6, 96.72252805}, {7, 97.32008855}, {8, 97.76142319}, {9, 98.07767693}, {10, 98.32803368}, {11, 98.53703922},
	{15, 99.02687903}, {19, 99.28327320}, {25, 99.47017018}, {35, 99.61687629}, {50, 99.72156049}, {75, 99.79627489},
	{128, 99.85391982}, {237, 99.89454400}, {456, 99.92397149}, {840, 99.94524471}, {1418, 99.96057995}, {2196, 99.97161595},
	{3153, 99.97955752}, {4348, 99.98528313}, {5773, 99.98940455}, {7449, 99.99237025}, {9349, 99.99450653}, {11543, 99.99604519},
	{13930, 99.99715251}, {16669, 99.99794966}, {19892, 99.99852390}, {23330, 99.99893713}, {27263, 99.99923479},
	{31717, 99.99944914}, {36534, 99.99960323}, {41864, 99.99971453}, {47785, 99.99979454}, {55542, 99.99985216},
	{63654, 99.99989365}, {72289, 99.99992328}, {82631, 99.99994501}, {97501, 99.99996049}, {115445, 99.99997135},
	{139698, 99.99997959}, {170429, 99.99998518}, {187627, 99.99998946}, {213274, 99.99999243}, {242781, 99.99999473},
	{278496, 99.99999605}, {297564, 99.99999737}, {315801, 99.99999802}, {423083, 99.99999868}, {450999, 99.99999901},
	{485372, 99.99999934}, {906857, 99.99999967}, {961963, 100},
}

const linkBenchLastStep = 11

// outDegreeAt is the out-degree that the fraction u of all nodes does not exceed.
func outDegreeAt(u float64) int64 {
	percent := 100 * u
	low, high := 0, len(outDegrees)-1 // the first point that is not below percent
	for low < high {
		if middle := (low + high) / 2; outDegrees[middle].cumulative < percent {
			low = middle + 1
		} else {
			high = middle
		}
	}
	to := outDegrees[low]
	if to.degree <= linkBenchLastStep {
		return int64(to.degree)
	}
	from := outDegrees[low-1]
	return int64(math.Ceil(from.degree + (to.degree-from.degree)*(percent-from.cumulative)/(to.cumulative-from.cumulative)))
}

// linkGraph is the graph as it is loaded. The out-degrees are not drawn: of n nodes the
// one of rank r has that of the fraction 1-r/n, so that however small the graph is, one
// node has them all but few.
type linkGraph struct {
	start, nodes, types int64
	nlinksMax           int64 // of out-degrees, before leftoverBug adds to them; 0 is no limit
	leftoverBug         bool
	ranks               shuffle
}

func newLinkGraph(o *contract.LinkBench) *linkGraph {
	n := o.MaxID - o.StartID
	return &linkGraph{start: o.StartID, nodes: n, types: int64(o.LinkTypes), nlinksMax: o.NLinksMax, leftoverBug: o.LeftoverBug,
		ranks: newShuffle(n, linkBenchSeed)}
}

// degreeOfRank is the out-degree of the node that only rank other nodes exceed.
func (g *linkGraph) degreeOfRank(rank int64) int64 {
	d := outDegreeAt(1 - float64(rank)/float64(g.nodes))
	if g.nlinksMax > 0 {
		d = min(d, g.nlinksMax)
	}
	return d
}

func (g *linkGraph) degree(id int64) int64 { return g.degreeOfRank(g.ranks.inverse(id - g.start)) }

// ofType is how many of a node's links are of a type, counted from 0. The tool takes
// all links beyond one type's share for what is left over, and loads more than there are.
func (g *linkGraph) ofType(degree, linkType int64) int64 {
	share := degree / g.types
	leftover := degree % g.types
	if g.leftoverBug {
		leftover = degree - share
	}
	if linkType < leftover {
		share++
	}
	return share
}

// loaded is how many links of all types a node of the degree gets.
func (g *linkGraph) loaded(degree int64) (n int64) {
	for t := range g.types {
		n += g.ofType(degree, t)
	}
	return n
}

// shuffle is a permutation of the numbers below n that can be undone: a Feistel network
// over the next power of two, which is walked until it comes back below n.
type shuffle struct {
	n           uint64
	rightBits   int
	left, right uint64 // masks of the two parts of a number
	keys        [shuffleRounds]uint64
}

const shuffleRounds = 6

func newShuffle(n int64, seed uint64) shuffle {
	width := bits.Len64(uint64(n - 1))
	s := shuffle{n: uint64(n), rightBits: width - width/2}
	s.left, s.right = 1<<(width/2)-1, 1<<s.rightBits-1
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range s.keys {
		s.keys[i] = rng.Uint64()
	}
	return s
}

// place is where i goes, inverse what goes there.
func (s *shuffle) place(i int64) int64 {
	x := uint64(i)
	for {
		l, r := x>>s.rightBits, x&s.right
		for k := 0; k < shuffleRounds; k += 2 {
			l ^= scramble(r^s.keys[k]) & s.left
			r ^= scramble(l^s.keys[k+1]) & s.right
		}
		if x = l<<s.rightBits | r; x < s.n {
			return int64(x)
		}
	}
}

func (s *shuffle) inverse(i int64) int64 {
	x := uint64(i)
	for {
		l, r := x>>s.rightBits, x&s.right
		for k := shuffleRounds - 2; k >= 0; k -= 2 {
			r ^= scramble(l^s.keys[k+1]) & s.right
			l ^= scramble(r^s.keys[k]) & s.left
		}
		if x = l<<s.rightBits | r; x < s.n {
			return int64(x)
		}
	}
}

// scramble is the finalizer of SplitMix64: each bit of x decides on all of the result.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// quantileZipf draws ranks from 0 to n-1 with a probability in proportion to
// (rank+1)^-shape, by the approximate quantile of J. Gray et al., "Quickly generating
// billion-record synthetic databases", SIGMOD 1994. Shape is greater than 0 and less
// than 1.
type quantileZipf struct {
	n, harmonic, second, alpha, eta float64
}

// exactHarmonic is up to where the sum is made term by term.
const exactHarmonic = 100000

func newQuantileZipf(n int64, shape float64) quantileZipf {
	z := quantileZipf{n: float64(n), harmonic: harmonic(n, shape), second: math.Pow(0.5, shape), alpha: 1 / (1 - shape)}
	if n > 2 {
		z.eta = (1 - math.Pow(2/z.n, 1-shape)) / (1 - (1+z.second)/z.harmonic)
	}
	return z
}

// harmonic is the sum of k^-shape for k from 1 to n; beyond exactHarmonic the sum is
// taken for the integral, with half of the last terms to make up for the corners.
func harmonic(n int64, shape float64) (sum float64) {
	for k := range min(n, exactHarmonic) {
		sum += math.Pow(float64(k+1), -shape)
	}
	if n > exactHarmonic {
		from, to := float64(exactHarmonic), float64(n)
		sum += (math.Pow(to, 1-shape)-math.Pow(from, 1-shape))/(1-shape) + (math.Pow(to, -shape)-math.Pow(from, -shape))/2
	}
	return sum
}

func (z *quantileZipf) rank(rng *rand.Rand) int64 {
	u := rng.Float64()
	switch x := u * z.harmonic; {
	case x < 1:
		return 0
	case x < 1+z.second:
		return int64(min(1, z.n-1))
	}
	return int64(min(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha), z.n-1))
}

// access is how often which node is asked for: by the Zipf distribution of ranks, which
// a shuffle spreads over the ids.
type access struct {
	start  int64
	ranks  quantileZipf
	spread shuffle
}

func (g *linkGraph) access(shape float64, seed uint64) access {
	return access{g.start, newQuantileZipf(g.nodes, shape), newShuffle(g.nodes, seed)}
}

func (a *access) id(rng *rand.Rand) int64 { return a.start + a.spread.place(a.ranks.rank(rng)) }

// blendedAccess prefers the nodes with many links in a part of its draws only.
type blendedAccess struct {
	correlated, uncorrelated access
	uncorrelatedShare        float64
}

func (b *blendedAccess) id(rng *rand.Rand) int64 {
	if rng.Float64() < b.uncorrelatedShare {
		return b.uncorrelated.id(rng)
	}
	return b.correlated.id(rng)
}

// dataGenerator makes the data of links or of nodes: pieces of new random bytes among
// pieces that repeat, so that it can be compressed as far as Facebook's.
type dataGenerator struct {
	logMedian  float64
	largest    float64
	low        byte
	span       uint32
	uniqueness float64
	motif      [motifLength]byte
}

const (
	// motifLength is that in effect: the tool never reads the option.
	motifLength = 512
	motifPiece  = 128
)

// newDataGenerator makes lengths lognormal with a sigma of 1, below largest, and bytes
// from low to below high.
func newDataGenerator(rng *rand.Rand, median, largest int32, low, high byte, uniqueness float64) *dataGenerator {
	g := &dataGenerator{logMedian: math.Log(float64(median)), largest: float64(largest), low: low, span: uint32(high - low),
		uniqueness: uniqueness}
	g.fill(rng, g.motif[:])
	return g
}

// next draws the data of a link or a node into the buffer, which is made longer where
// it must be.
func (g *dataGenerator) next(rng *rand.Rand, buffer []byte) []byte {
	// A median of 0 has the logarithm -Inf, and all lengths are 0.
	length := int(min(math.Round(math.Exp(g.logMedian+rng.NormFloat64())), g.largest-1))
	buffer = slices.Grow(buffer[:0], length)[:length]
	for rest := buffer; len(rest) > 0; {
		piece := rest[:min(len(rest), motifPiece)]
		rest = rest[len(piece):]
		if rng.Float64() < g.uniqueness {
			g.fill(rng, piece)
		} else {
			copy(piece, g.motif[rng.IntN(motifLength-len(piece)+1):])
		}
	}
	return buffer
}

func (g *dataGenerator) fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = g.low + byte(rng.Uint32N(g.span))
	}
}

// geometric draws a number of 1 to largest: how often a coin falls that shows the one
// side with the probability p, until it does.
func geometric(rng *rand.Rand, p float64, largest int) int {
	n := math.Ceil(math.Log(1-rng.Float64()) / math.Log(1-p))
	return int(min(max(n, 1), float64(largest)))
}
