package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
)

// Size is a number of bytes. JSON spells it as a quantity of Kubernetes: "1", "1Ki",
// "1.5Mi", "2k", "1e3", or a number.
type Size int64

var (
	quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]{1,2})?)([kMGT]|[KMGT]i)?$`)
	suffixes = map[string]int64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}
)

// ParseSize reads a quantity. One that is not a whole number of bytes, negative or
// greater than an int64 is an error.
func ParseSize(text string) (Size, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%q is not a size: write a number of bytes with or without a suffix, such as 1, 1Ki or 1Mi", text)
	}
	n, ok := new(big.Rat).SetString(parts[1])
	if !ok {
		return 0, fmt.Errorf("%q is not a size", text)
	}
	n.Mul(n, new(big.Rat).SetInt64(suffixes[parts[2]]))
	if !n.IsInt() || n.Cmp(new(big.Rat).SetInt64(math.MaxInt64)) > 0 {
		return 0, fmt.Errorf("%q is not a whole number of bytes up to %d", text, int64(math.MaxInt64))
	}
	return Size(n.Num().Int64()), nil
}

// String is the shortest of the spellings that ParseSize reads, with a binary suffix
// or none.
func (s Size) String() string {
	for _, suffix := range []string{"Ti", "Gi", "Mi", "Ki"} {
		if unit := Size(suffixes[suffix]); s != 0 && s%unit == 0 {
			return strconv.FormatInt(int64(s/unit), 10) + suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalJSON writes the size as a string.
func (s Size) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads a string or a number.
func (s *Size) UnmarshalJSON(b []byte) (err error) {
	text := string(b)
	if bytes.HasPrefix(b, []byte(`"`)) {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*s, err = ParseSize(text)
	return err
}
