package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"
)

// The limits of a record. An encoder keeps them; a reader, to which a log is
// untrusted input, refuses what exceeds them.
const (
	// MaxLineBytes is the longest line, newline included. It stays below the 16 KiB at
	// which container runtimes split lines.
	MaxLineBytes = 8 << 10
	// MaxRecordBytes is the largest log that is read for a record.
	MaxRecordBytes = 8 << 20
	// MaxHistogramPartBytes is the longest piece of a histogram, base64.
	MaxHistogramPartBytes = 4 << 10
	// MaxHistogramParts bounds the pieces of one histogram.
	MaxHistogramParts = 64
	// MaxOperations bounds the kinds of event of a workload.
	MaxOperations = 256
	// MaxIntervals bounds the time series.
	MaxIntervals = 600
	// MaxTerminationBytes is the longest termination message that Kubernetes keeps.
	MaxTerminationBytes = 4 << 10

	// MaxNames bounds the variables, and the counters, of a server.
	MaxNames = 512

	maxIntervalsPerLine = 24
	maxNamesPerLine     = 20
	maxTextBytes        = 1 << 10
	maxListItems        = 64
	maxListItemBytes    = 256
	maxListBytes        = 3 << 10
)

// line is one line of a record: its kind, and the body that belongs to the kind.
type line[B any] struct {
	Kind Kind `json:"kind"`
	Body B    `json:"body"`
}

// Encoder writes a record as JSON lines, each with a single Write. Its methods
// may be called from several goroutines; the order of the kinds is the caller's
// to keep (see Kind).
type Encoder struct {
	mu    sync.Mutex
	w     io.Writer
	hash  hash.Hash
	lines int
}

// NewEncoder returns an encoder that writes to w.
func NewEncoder(w io.Writer) *Encoder {
	return &Encoder{w: w, hash: sha256.New()}
}

// Start opens the record; the version is filled in.
func (e *Encoder) Start(s Start) error {
	s.Version = RecordVersion
	return encodeLine(e, KindStart, s)
}

// Progress reports where the run is.
func (e *Encoder) Progress(p Progress) error { return encodeLine(e, KindProgress, p) }

// Environment reports what the numbers were measured on.
func (e *Encoder) Environment(v Environment) error {
	variables, counters := v.ServerVariables, v.StatusDeltas
	v.ServerVariables, v.StatusDeltas = nil, nil
	if err := encodeLine(e, KindEnvironment, v); err != nil {
		return err
	}
	for _, piece := range pieces(variables) {
		for name, value := range piece {
			piece[name] = shorten(value, maxListItemBytes)
		}
		if err := encodeLine(e, KindVariables, piece); err != nil {
			return err
		}
	}
	for _, piece := range pieces(counters) {
		if err := encodeLine(e, KindCounters, piece); err != nil {
			return err
		}
	}
	return nil
}

// pieces cuts a map, in the order of its names, into some that fit into a line each.
func pieces[V any](m map[string]V) (all []map[string]V) {
	for names := range slices.Chunk(slices.Sorted(maps.Keys(m)), maxNamesPerLine) {
		piece := make(map[string]V, len(names))
		for _, name := range names {
			piece[name] = m[name]
		}
		all = append(all, piece)
	}
	return all
}

// Operation writes an operation and, in parts, its histogram.
func (e *Encoder) Operation(o Operation) error {
	parts := split(o.Histogram, MaxHistogramPartBytes)
	if len(parts) > MaxHistogramParts {
		return fmt.Errorf("histogram of operation %q is %d bytes, more than a record carries", o.Name, len(o.Histogram))
	}
	o.Histogram = ""
	if err := encodeLine(e, KindOperation, o); err != nil {
		return err
	}
	for i, data := range parts {
		p := HistogramPart{Part: i + 1, Parts: len(parts), Data: data}
		if err := encodeLine(e, KindHistogram, p); err != nil {
			return err
		}
	}
	return nil
}

// Series writes the time series, a bounded number of intervals to a line.
func (e *Encoder) Series(intervals []Interval) error {
	for len(intervals) > 0 {
		n := min(len(intervals), maxIntervalsPerLine)
		if err := encodeLine(e, KindSeries, intervals[:n]); err != nil {
			return err
		}
		intervals = intervals[n:]
	}
	return nil
}

// Result sums the run up. Texts too long for a line are shortened.
func (e *Encoder) Result(r Result) error {
	r.Failure = r.Failure.shortened(maxTextBytes)
	r.Warnings = shortenedList(r.Warnings)
	return encodeLine(e, KindResult, r)
}

// End closes the record with the count and the checksum of its lines.
func (e *Encoder) End() error {
	e.mu.Lock()
	end := End{Lines: e.lines, SHA256: hex.EncodeToString(e.hash.Sum(nil))}
	e.mu.Unlock()
	return encodeLine(e, KindEnd, end)
}

func encodeLine[B any](e *Encoder, kind Kind, body B) error {
	b, err := marshal(line[B]{kind, body})
	if err != nil {
		return fmt.Errorf("encode %s line: %w", kind, err)
	}
	if len(b) > MaxLineBytes {
		return fmt.Errorf("encode %s line: %d bytes, at most %d are allowed", kind, len(b), MaxLineBytes)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hash.Write(b)
	e.lines++
	if _, err := e.w.Write(b); err != nil {
		return fmt.Errorf("write %s line: %w", kind, err)
	}
	return nil
}

// marshal is json.Marshal with a newline and without HTML escapes, which would
// make the length of a text hard to foresee.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

func split(s string, size int) []string {
	var parts []string
	for len(s) > size {
		parts = append(parts, s[:size])
		s = s[size:]
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}

// shortened returns a copy whose texts are at most n bytes each.
func (f *Failure) shortened(n int) *Failure {
	if f == nil {
		return nil
	}
	short := *f
	short.Message = shorten(f.Message, n)
	short.Hint = shorten(f.Hint, n)
	return &short
}

func shortenedList(list []string) []string {
	var out []string
	total := 0
	for _, s := range list[:min(len(list), maxListItems)] {
		s = shorten(s, maxListItemBytes)
		if total += jsonLen(s); total > maxListBytes {
			break
		}
		out = append(out, s)
	}
	return out
}

// shorten cuts s to at most n bytes of its JSON form, at the boundary of a
// character, and marks the cut.
func shorten(s string, n int) string {
	const mark = "…"
	size := 0
	cut := 0 // the longest prefix that leaves room for the mark
	for i, r := range s {
		if size+len(mark) <= n {
			cut = i
		}
		if size += jsonSize(r); size > n {
			return s[:cut] + mark
		}
	}
	return s
}

// jsonLen is the length of s in a JSON string, quotes and comma included.
func jsonLen(s string) int {
	n := len(`"",`)
	for _, r := range s {
		n += jsonSize(r)
	}
	return n
}

// jsonSize is the number of bytes that a character takes in a JSON string.
func jsonSize(r rune) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError || r == 0x7f:
		return 6
	}
	return utf8.RuneLen(r)
}

// EncodeTerminationMessage returns m as JSON of at most MaxTerminationBytes; the
// version is filled in and texts are shortened as far as need be.
func EncodeTerminationMessage(m TerminationMessage) ([]byte, error) {
	m.Version = TerminationVersion
	m.Run = shorten(m.Run, maxListItemBytes)
	m.Failure = m.Failure.shortened(maxTextBytes)
	b, err := marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode termination message: %w", err)
	}
	if len(b) > MaxTerminationBytes {
		return nil, fmt.Errorf("encode termination message: %d bytes, at most %d are allowed", len(b), MaxTerminationBytes)
	}
	return b, nil
}

// EncodeRunSpec validates the spec and returns it as indented JSON; the version is
// filled in.
func EncodeRunSpec(s RunSpec) ([]byte, error) {
	s.Version = RunSpecVersion
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return json.MarshalIndent(s, "", "  ")
}
