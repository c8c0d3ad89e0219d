package random

import "math/rand/v2"

const groupDigits = 11

// AppendDigits appends groups of eleven digits with dashes between them, as they fill
// the texts of sysbench's tables: 12*groups-1 bytes.
func AppendDigits(dst []byte, rng *rand.Rand, groups int) []byte {
	for i := range groups {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = appendGroup(dst, rng.Uint64N(100_000_000_000))
	}
	return dst
}

// appendGroup appends n with its leading zeros.
func appendGroup(dst []byte, n uint64) []byte {
	var group [groupDigits]byte
	for i := groupDigits - 1; i >= 0; i-- {
		group[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, group[:]...)
}
