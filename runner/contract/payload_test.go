package contract

import (
	"strings"
	"testing"
)

func payload() Payload {
	return Payload{Operation: PayloadUpdate, Size: 1, Lengths: LengthsFixed, Rows: 1000, Engine: "InnoDB", KeyType: KeyBigInt,
		Column: ColumnAuto, Autocommit: true, CommitEvery: 100, Alphabet: AlphabetBinary}
}

func size(n Size) *Size { return &n }

func TestPayloadValidate(t *testing.T) {
	for _, tt := range []struct {
		want   string // part of the error, "" for none
		change func(*Payload)
	}{
		{"", func(*Payload) {}},
		{"", func(p *Payload) { p.ToSize = size(1 << 20) }},
		{"", func(p *Payload) { p.Size, p.Lengths, p.MinSize = 200, LengthsUniform, size(1) }},
		{"", func(p *Payload) { p.Column, p.Alphabet, p.Size = ColumnVarChar, AlphabetDigits, MaxVarChar }},
		{"operation", func(p *Payload) { p.Operation = "insert" }},
		{"lengths", func(p *Payload) { p.Lengths = "" }},
		{"keyType", func(p *Payload) { p.KeyType = "" }},
		{"column", func(p *Payload) { p.Column = "Text" }},
		{"alphabet", func(p *Payload) { p.Alphabet = "Hex" }},
		{"engine", func(p *Payload) { p.Engine = "InnoDB; DROP" }},
		{"rows", func(p *Payload) { p.Rows = 0 }},
		{"use BigInt", func(p *Payload) { p.KeyType, p.Rows = KeyInt, 1<<31 }},
		{"commitEvery", func(p *Payload) { p.Autocommit, p.CommitEvery = false, 0 }},
		{"payload.size", func(p *Payload) { p.Size = 0 }},
		{"payload.size", func(p *Payload) { p.Column, p.Size = ColumnBlob, MaxBlob+1 }},
		{"payload.size", func(p *Payload) { p.Column, p.Alphabet, p.Size = ColumnVarChar, AlphabetDigits, MaxVarChar+1 }},
		{"payload.toSize", func(p *Payload) { p.ToSize = size(1 << 30) }},
		{"toSize has no meaning", func(p *Payload) { p.Operation, p.ToSize = PayloadInsert, size(1) }},
		{"minSize goes with", func(p *Payload) { p.MinSize = size(1) }},
		{"minSize is 2", func(p *Payload) { p.Lengths, p.MinSize = LengthsUniform, size(2) }},
		{"needs alphabet", func(p *Payload) { p.Column = ColumnVarChar }},
	} {
		p := payload()
		tt.change(&p)
		err := p.validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", p, err, tt.want)
		}
	}
}

func TestPayloadColumn(t *testing.T) {
	for _, tt := range []struct {
		operation string
		size      Size
		toSize    *Size
		want      string
	}{
		{PayloadInsert, 1, nil, ColumnBlob},
		{PayloadInsert, MaxBlob, nil, ColumnBlob},
		{PayloadInsert, MaxBlob + 1, nil, ColumnMediumBlob},
		{PayloadInsert, MaxMediumBlob + 1, nil, ColumnLongBlob},
		{PayloadUpdate, 1, size(1 << 20), ColumnMediumBlob},
		{PayloadReplace, 1 << 20, size(1), ColumnMediumBlob},
	} {
		p := payload()
		p.Operation, p.Size, p.ToSize = tt.operation, tt.size, tt.toSize
		if got := p.ColumnType(); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt, got, tt.want)
		}
	}
}
