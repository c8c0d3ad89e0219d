package workload

import (
	"math/bits"
	"math/rand/v2"

	"dbbench.dev/operator/runner/contract"
)

// payloadStarts is the number of places in the pool at which a value may begin.
const payloadStarts = 1 << 20

// payloadValues are the values of a seed: pieces of one pool of random bytes, which all
// clients read and nobody copies. A value depends on the seed, the row and the version,
// not on who writes it. Two versions of a row that follow each other differ: no two
// neighbours in the pool are equal, and the next version begins one byte further on.
type payloadValues struct {
	pool []byte
	seed uint64
}

// newPayloadValues makes values of up to largest bytes.
func newPayloadValues(seed int64, alphabet string, largest contract.Size) *payloadValues {
	letters := payloadAlphabet(alphabet)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	pool := make([]byte, payloadStarts+largest)
	last := -1
	for i := range pool {
		n := rng.IntN(len(letters) - 1)
		if n >= last && i > 0 {
			n++
		}
		pool[i], last = letters[n], n
	}
	// The last place is followed by the first one.
	for end := payloadStarts - 1; pool[end] == pool[0] || pool[end] == pool[end-1] || pool[end] == pool[end+1]; {
		pool[end] = letters[rng.IntN(len(letters))]
	}
	return &payloadValues{pool: pool, seed: uint64(seed)}
}

// payloadAlphabet lists the bytes of an alphabet. Printable has no quotes and no
// backslash, so that its texts can be written as literals in every sql_mode.
func payloadAlphabet(name string) []byte {
	switch name {
	case contract.AlphabetDigits:
		return []byte("0123456789")
	case contract.AlphabetPrintable:
		return letters(' ', '~', `'"\`)
	}
	return letters(0, 255, "")
}

func letters(from, to int, without string) []byte {
	var out []byte
	for c := from; c <= to; c++ {
		excluded := false
		for i := range len(without) {
			excluded = excluded || int(without[i]) == c
		}
		if !excluded {
			out = append(out, byte(c))
		}
	}
	return out
}

// payloadLengths are those of values: from shortest to longest bytes, all alike.
type payloadLengths struct{ shortest, longest int64 }

func newPayloadLengths(opts contract.Payload, size contract.Size) payloadLengths {
	l := payloadLengths{int64(size), int64(size)}
	if opts.Lengths == contract.LengthsUniform {
		l.shortest = 1
		if opts.MinSize != nil {
			l.shortest = int64(*opts.MinSize)
		}
	}
	return l
}

// value is that of a row in a version. It is part of the pool and must not be changed.
func (v *payloadValues) value(lengths payloadLengths, row int64, version uint64) []byte {
	h := mix(v.seed ^ mix(uint64(row)))
	start := (h + version) % payloadStarts
	length := lengths.longest
	if span := uint64(lengths.longest-lengths.shortest) + 1; span > 1 {
		high, _ := bits.Mul64(mix(h^mix(version)), span)
		length = lengths.shortest + int64(high)
	}
	return v.pool[start : start+uint64(length)]
}

// mix spreads the bits of x: the finalizer of SplitMix64 (G. Steele, D. Lea,
// C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
