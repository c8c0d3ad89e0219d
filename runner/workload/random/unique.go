package random

import "math/rand/v2"

// Unique gives 32-bit numbers of which none comes twice before 2^32 of them: a
// permutation by quadratic residues. Several draw from one sequence without sharing
// anything: each takes every n-th number.
type Unique struct {
	index, step, offset uint32
}

// largestPrime of 32 bits; it leaves the remainder 3 by 4, as the permutation needs.
const largestPrime = 4294967291

// NewUnique returns the i-th of n that share the sequence of a seed.
func NewUnique(seed uint64, i, n int) *Unique {
	rng := rand.New(rand.NewPCG(seed, 0))
	return &Unique{index: rng.Uint32() + uint32(i), step: uint32(n), offset: rng.Uint32()}
}

// Next draws a number.
func (u *Unique) Next() uint32 {
	x := permute((permute(u.index) + u.offset) ^ 0x5bf03635)
	u.index += u.step
	return x
}

// permute maps x to its quadratic residue, and the upper half of the numbers to the
// others. The five numbers from the prime on are their own images.
func permute(x uint32) uint32 {
	if x >= largestPrime {
		return x
	}
	residue := uint32(uint64(x) * uint64(x) % largestPrime)
	if x <= largestPrime/2 {
		return residue
	}
	return largestPrime - residue
}
