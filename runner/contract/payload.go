package contract

import (
	"fmt"
	"math"
	"slices"
)

// Payload writes values of a given size, by key.
type Payload struct {
	Operation      string `json:"operation"`
	Size           Size   `json:"size"`
	ToSize         *Size  `json:"toSize,omitempty"`
	Lengths        string `json:"lengths"`
	MinSize        *Size  `json:"minSize,omitempty"`
	Rows           int64  `json:"rows"`
	Engine         string `json:"engine"`
	KeyType        string `json:"keyType"`
	Column         string `json:"column"`
	Autocommit     bool   `json:"autocommit"`
	CommitEvery    int64  `json:"commitEvery,omitempty"`
	TablePerClient bool   `json:"tablePerClient,omitempty"`
	Alphabet       string `json:"alphabet"`
	Checksum       bool   `json:"checksum,omitempty"`
	Seed           int64  `json:"seed"`
}

// The operations of payload.
const (
	PayloadInsert    = "Insert"
	PayloadUpdate    = "Update"
	PayloadUpdateAll = "UpdateAll"
	PayloadReplace   = "Replace"
)

// The lengths of values: all alike, or drawn from a range.
const (
	LengthsFixed   = "Fixed"
	LengthsUniform = "Uniform"
)

// The types of a payload's key.
const (
	KeyBigInt = "BigInt"
	KeyInt    = "Int"
)

// The types of a payload's column. Auto takes the smallest blob that holds the values.
const (
	ColumnAuto       = "Auto"
	ColumnVarChar    = "VarChar"
	ColumnBlob       = "Blob"
	ColumnMediumBlob = "MediumBlob"
	ColumnLongBlob   = "LongBlob"
)

// The alphabets of a payload's values.
const (
	AlphabetBinary    = "Binary"
	AlphabetPrintable = "Printable"
	AlphabetDigits    = "Digits"
)

// Largest sizes in bytes of a value by the type of its column. That of VarChar is what
// a row has room for where a character may take four bytes.
const (
	MaxVarChar    = 16383
	MaxBlob       = 1<<16 - 1
	MaxMediumBlob = 1<<24 - 1
	// MaxPayload is the largest packet of the protocol, 1 GiB, less room for what
	// surrounds a value; a load sends it in hexadecimal, twice as long.
	MaxPayload = 1<<29 - 1<<16
)

// WrittenSize is the size of the values that the operation writes.
func (p *Payload) WrittenSize() Size {
	if p.ToSize != nil && p.Operation != PayloadInsert {
		return *p.ToSize
	}
	return p.Size
}

// LargestSize is that of all values, loaded and written.
func (p *Payload) LargestSize() Size { return max(p.Size, p.WrittenSize()) }

// ColumnType is the type of the column, with Auto resolved.
func (p *Payload) ColumnType() string {
	switch {
	case p.Column != ColumnAuto:
		return p.Column
	case p.LargestSize() <= MaxBlob:
		return ColumnBlob
	case p.LargestSize() <= MaxMediumBlob:
		return ColumnMediumBlob
	}
	return ColumnLongBlob
}

func (p *Payload) validate() error {
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{
		{"operation", p.Operation, []string{PayloadInsert, PayloadUpdate, PayloadUpdateAll, PayloadReplace}},
		{"lengths", p.Lengths, []string{LengthsFixed, LengthsUniform}},
		{"keyType", p.KeyType, []string{KeyBigInt, KeyInt}},
		{"column", p.Column, []string{ColumnAuto, ColumnVarChar, ColumnBlob, ColumnMediumBlob, ColumnLongBlob}},
		{"alphabet", p.Alphabet, []string{AlphabetBinary, AlphabetPrintable, AlphabetDigits}},
	} {
		if !slices.Contains(f.allowed, f.value) {
			return fmt.Errorf("workload.payload.%s is %q, must be one of %v", f.name, f.value, f.allowed)
		}
	}
	switch {
	case !word.MatchString(p.Engine):
		return fmt.Errorf("workload.payload.engine is %q, must be the name of a storage engine", p.Engine)
	case p.Rows < 1 || p.Rows > 1<<40:
		return fmt.Errorf("workload.payload.rows is %d, must be 1 to %d", p.Rows, int64(1)<<40)
	case p.KeyType == KeyInt && p.Rows > math.MaxInt32:
		return fmt.Errorf("workload.payload.rows is %d, more than keyType Int has keys: use BigInt", p.Rows)
	case !p.Autocommit && p.CommitEvery < 1:
		return fmt.Errorf("workload.payload.commitEvery is %d, must be at least 1 where autocommit is false", p.CommitEvery)
	}
	return p.validateSizes()
}

func (p *Payload) validateSizes() error {
	limits := map[string]Size{ColumnVarChar: MaxVarChar, ColumnBlob: MaxBlob, ColumnMediumBlob: MaxMediumBlob, ColumnLongBlob: MaxPayload}
	limit := limits[p.ColumnType()]
	sizes := []struct {
		name string
		size *Size
	}{{"size", &p.Size}, {"toSize", p.ToSize}, {"minSize", p.MinSize}}
	for _, f := range sizes {
		if f.size != nil && (*f.size < 1 || *f.size > limit) {
			return fmt.Errorf("workload.payload.%s is %s, must be 1 to %d bytes for the column %s", f.name, *f.size, limit, p.ColumnType())
		}
	}
	switch {
	case p.ToSize != nil && p.Operation == PayloadInsert:
		return fmt.Errorf("workload.payload.toSize has no meaning with operation Insert, which writes values of size: leave it out")
	case p.MinSize != nil && p.Lengths != LengthsUniform:
		return fmt.Errorf("workload.payload.minSize goes with lengths: Uniform")
	case p.MinSize != nil && *p.MinSize > min(p.Size, p.WrittenSize()):
		return fmt.Errorf("workload.payload.minSize is %s, must not be greater than size and toSize", *p.MinSize)
	case p.ColumnType() == ColumnVarChar && p.Alphabet == AlphabetBinary:
		return fmt.Errorf("workload.payload.column VarChar needs alphabet Printable or Digits: any byte is not a character")
	}
	return nil
}
