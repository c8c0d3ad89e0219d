package contract

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"strings"
)

// Reason says what is wrong with a record.
type Reason string

// The reasons for which a record is refused.
const (
	// ReasonTruncated is a record without its end: the log was cut, or the runner
	// was killed.
	ReasonTruncated Reason = "Truncated"
	// ReasonMalformed is a line that does not decode, is out of order or
	// contradicts another.
	ReasonMalformed Reason = "Malformed"
	// ReasonWrongVersion is a record of a runner that speaks another revision.
	ReasonWrongVersion Reason = "WrongVersion"
	// ReasonWrongRun is the record of another run, execution or benchmark.
	ReasonWrongRun Reason = "WrongRun"
	// ReasonTooLarge is a line, a list or a log over its limit.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonChecksumMismatch is a record of which lines are missing or altered.
	ReasonChecksumMismatch Reason = "ChecksumMismatch"
)

// RecordError is the refusal of a record.
type RecordError struct {
	Reason Reason
	// Line counts the lines of the log from 1; 0 is the log as a whole.
	Line   int
	Detail string
}

func (e *RecordError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("record %s: %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("record %s at line %d: %s", e.Reason, e.Line, e.Detail)
}

// ReadRecord reads the log of a runner pod, which it does not trust, to its end
// line. Lines that do not begin with "{" are diagnostics, which the container
// runtime mixes in from standard error; they are skipped. A record that is not
// exactly one of the wanted run is refused with a *RecordError; any other error is
// the reader's.
func ReadRecord(r io.Reader, want Run) (*Record, error) {
	d := &recordDecoder{want: want, hash: sha256.New()}
	lines := newLineReader(r)
	for {
		b, err := lines.next()
		if errors.Is(err, io.EOF) {
			return d.finish()
		}
		if err != nil {
			return nil, err
		}
		if err := d.add(b); err != nil {
			var re *RecordError
			if errors.As(err, &re) {
				re.Line = lines.number
			}
			return nil, err
		}
	}
}

// ReadProgress returns the latest progress line of the tail of a log, nil if there
// is none. Lines that are cut or are of another kind are skipped.
func ReadProgress(r io.Reader) (*Progress, error) {
	var latest *Progress
	lines := newLineReader(r)
	for {
		b, err := lines.next()
		var re *RecordError
		switch {
		case errors.Is(err, io.EOF):
			return latest, nil
		case errors.As(err, &re) && re.Line > 0:
			continue // a line too long
		case err != nil:
			return latest, err
		}
		var l line[json.RawMessage]
		if decodeStrict(b, &l) != nil || l.Kind != KindProgress {
			continue
		}
		var p Progress
		if decodeStrict(l.Body, &p) == nil && p.validate() == nil {
			latest = &p
		}
	}
}

// DecodeTerminationMessage reads what a runner left behind. It is untrusted input.
func DecodeTerminationMessage(b []byte) (*TerminationMessage, error) {
	if len(b) > MaxTerminationBytes {
		return nil, fmt.Errorf("termination message: %d bytes, at most %d are allowed", len(b), MaxTerminationBytes)
	}
	var m TerminationMessage
	if err := decodeStrict(b, &m); err != nil {
		return nil, fmt.Errorf("termination message: %w", err)
	}
	if m.Version != TerminationVersion {
		return nil, fmt.Errorf("termination message: version %q, this build reads %q", m.Version, TerminationVersion)
	}
	if err := validateOutcome(m.Outcome, m.Failure); err != nil {
		return nil, fmt.Errorf("termination message: %w", err)
	}
	return &m, nil
}

// DecodeRunSpec reads and validates a run's spec.
func DecodeRunSpec(b []byte) (*RunSpec, error) {
	var v struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("run spec: %w", err)
	}
	// The version is looked at first: of another revision an unknown field would be
	// reported, which is the consequence and not the cause.
	if v.Version != RunSpecVersion {
		return nil, fmt.Errorf("run spec: version is %q, this runner reads %q: use the runner image of the operator's own release", v.Version, RunSpecVersion)
	}
	var s RunSpec
	if err := decodeStrict(b, &s); err != nil {
		return nil, fmt.Errorf("run spec: %w", err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("run spec: %w", err)
	}
	return &s, nil
}

// decodeStrict decodes one JSON value that has no unknown field and nothing after it.
func decodeStrict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// lineReader yields the lines of a log that may belong to a record.
type lineReader struct {
	r      *bufio.Reader
	total  int
	number int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, MaxLineBytes)}
}

// next returns the next line that begins with "{", newline included. The slice is
// valid until the next call. At the end of the log the error is io.EOF; a line
// without a newline is one that was cut, and does not count.
func (l *lineReader) next() ([]byte, error) {
	for {
		b, err := l.r.ReadSlice('\n')
		l.number++
		l.total += len(b)
		isRecord := len(b) > 0 && b[0] == '{'
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) && l.total <= MaxRecordBytes {
			var rest []byte
			rest, err = l.r.ReadSlice('\n')
			l.total += len(rest)
		}
		switch {
		case l.total > MaxRecordBytes:
			return nil, refuse(ReasonTooLarge, "the log is longer than %d bytes", MaxRecordBytes)
		case err != nil:
			return nil, err
		case tooLong && isRecord:
			return nil, &RecordError{ReasonTooLarge, l.number, fmt.Sprintf("the line is longer than %d bytes", MaxLineBytes)}
		case isRecord:
			return b, nil
		}
	}
}

func refuse(reason Reason, format string, args ...any) *RecordError {
	return &RecordError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// rank is the place of each kind in a record; kinds of equal rank may alternate.
var rank = map[Kind]int{
	KindStart: 1, KindProgress: 2, KindEnvironment: 3, KindVariables: 4, KindCounters: 5,
	KindOperation: 6, KindHistogram: 6, KindSeries: 7, KindResult: 8, KindEnd: 9,
}

// once are the kinds that a record has exactly one line of.
var once = map[Kind]bool{KindStart: true, KindEnvironment: true, KindResult: true, KindEnd: true}

// recordDecoder takes the lines of a record one at a time.
type recordDecoder struct {
	want   Run
	hash   hash.Hash
	lines  int
	last   Kind
	record Record
	parts  int // of the current histogram, 0 before its first part
	next   int // the part that comes next
	hist   strings.Builder
}

func (d *recordDecoder) add(b []byte) error {
	var l line[json.RawMessage]
	if err := decodeStrict(b, &l); err != nil {
		return refuse(ReasonMalformed, "%v", err)
	}
	if err := d.checkOrder(l.Kind); err != nil {
		return err
	}
	if err := d.take(l.Kind, l.Body); err != nil {
		return err
	}
	d.last = l.Kind
	d.hash.Write(b)
	d.lines++
	return nil
}

func (d *recordDecoder) checkOrder(kind Kind) error {
	place, known := rank[kind]
	if !known {
		return refuse(ReasonMalformed, "unknown kind of line %q", kind)
	}
	before := rank[d.last] // 0 before the first line
	switch {
	case before == 0 && kind != KindStart:
		return refuse(ReasonMalformed, "the record begins with a line of kind %s, not start", kind)
	case place < before, place == before && once[kind]:
		return refuse(ReasonMalformed, "a line of kind %s after one of kind %s", kind, d.last)
	case place > rank[KindEnvironment] && before < rank[KindEnvironment],
		kind == KindEnd && d.last != KindResult:
		return refuse(ReasonMalformed, "a line of kind %s too early, after one of kind %s", kind, d.last)
	case kind != KindHistogram && d.next <= d.parts && d.parts > 0:
		return refuse(ReasonMalformed, "a histogram ends after %d of %d parts", d.next-1, d.parts)
	}
	return nil
}

func (d *recordDecoder) take(kind Kind, body []byte) error {
	switch kind {
	case KindStart:
		return d.takeStart(body)
	case KindProgress:
		return decodeBody(body, &Progress{})
	case KindEnvironment:
		return d.takeEnvironment(body)
	case KindVariables:
		return takeNames(body, &d.record.Environment.ServerVariables)
	case KindCounters:
		return takeNames(body, &d.record.Environment.StatusDeltas)
	case KindOperation:
		return d.takeOperation(body)
	case KindHistogram:
		return d.takeHistogram(body)
	case KindSeries:
		return d.takeSeries(body)
	case KindResult:
		if err := decodeBody(body, &d.record.Result); err != nil {
			return err
		}
		return d.checkTotals()
	}
	return d.takeEnd(body)
}

func (d *recordDecoder) takeStart(body []byte) error {
	// The version is looked at first, see DecodeRunSpec.
	var v struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return refuse(ReasonMalformed, "%v", err)
	}
	if v.Version != RecordVersion {
		return refuse(ReasonWrongVersion, "version %q, this build reads %q", v.Version, RecordVersion)
	}
	s := &d.record.Start
	if err := decodeBody(body, s); err != nil {
		return err
	}
	for _, c := range []struct{ what, got, want string }{
		{"run", s.Run, d.want.ID},
		{"execution", s.Execution, d.want.Execution},
		{"benchmark UID", s.BenchmarkUID, d.want.BenchmarkUID},
	} {
		if c.got != c.want {
			return refuse(ReasonWrongRun, "%s is %q, wanted is %q", c.what, c.got, c.want)
		}
	}
	return nil
}

func (d *recordDecoder) takeEnvironment(body []byte) error {
	e := &d.record.Environment
	if err := decodeBody(body, e); err != nil {
		return err
	}
	if e.ServerVariables != nil || e.StatusDeltas != nil {
		return refuse(ReasonMalformed, "the environment carries variables or counters in its own line")
	}
	return nil
}

// takeNames adds a piece of a map to the others.
func takeNames[V any](body []byte, all *map[string]V) error {
	var piece map[string]V
	if err := decodeStrict(body, &piece); err != nil {
		return refuse(ReasonMalformed, "%v", err)
	}
	if *all == nil {
		*all = map[string]V{}
	}
	maps.Copy(*all, piece)
	if len(*all) > MaxNames {
		return refuse(ReasonTooLarge, "more than %d variables or counters", MaxNames)
	}
	return nil
}

func (d *recordDecoder) takeOperation(body []byte) error {
	var o Operation
	if err := decodeBody(body, &o); err != nil {
		return err
	}
	if o.Histogram != "" {
		return refuse(ReasonMalformed, "operation %q carries its histogram in its own line", o.Name)
	}
	if len(d.record.Operations) == MaxOperations {
		return refuse(ReasonTooLarge, "more than %d operations", MaxOperations)
	}
	for _, other := range d.record.Operations {
		if other.Name == o.Name {
			return refuse(ReasonMalformed, "operation %q twice", o.Name)
		}
	}
	d.record.Operations = append(d.record.Operations, o)
	d.parts, d.next = 0, 1
	d.hist.Reset()
	return nil
}

func (d *recordDecoder) takeHistogram(body []byte) error {
	var p HistogramPart
	if err := decodeBody(body, &p); err != nil {
		return err
	}
	if len(d.record.Operations) == 0 {
		return refuse(ReasonMalformed, "a histogram without an operation")
	}
	if d.parts == 0 {
		d.parts = p.Parts
	}
	if p.Parts != d.parts || p.Part != d.next {
		return refuse(ReasonMalformed, "histogram part %d of %d where %d of %d belongs", p.Part, p.Parts, d.next, d.parts)
	}
	d.next++
	d.hist.WriteString(p.Data)
	if p.Part == p.Parts {
		d.record.Operations[len(d.record.Operations)-1].Histogram = d.hist.String()
	}
	return nil
}

func (d *recordDecoder) takeSeries(body []byte) error {
	var s intervals
	if err := decodeBody(body, &s); err != nil {
		return err
	}
	if len(d.record.Series)+len(s) > MaxIntervals {
		return refuse(ReasonTooLarge, "more than %d intervals", MaxIntervals)
	}
	d.record.Series = append(d.record.Series, s...)
	return nil
}

// checkTotals holds the result against the operations: a record that contradicts
// itself proves nothing.
func (d *recordDecoder) checkTotals() error {
	var count int64
	for _, o := range d.record.Operations {
		if o.Count > 0 && o.Histogram == "" {
			return refuse(ReasonMalformed, "operation %q has no histogram", o.Name)
		}
		count += o.Count
	}
	if events := d.record.Result.Events; count != events {
		return refuse(ReasonMalformed, "the operations count %d events, the result %d", count, events)
	}
	return nil
}

func (d *recordDecoder) takeEnd(body []byte) error {
	var e End
	if err := decodeBody(body, &e); err != nil {
		return err
	}
	if e.Lines != d.lines {
		return refuse(ReasonChecksumMismatch, "the runner wrote %d lines, the log has %d", e.Lines, d.lines)
	}
	if sum := hex.EncodeToString(d.hash.Sum(nil)); e.SHA256 != sum {
		return refuse(ReasonChecksumMismatch, "the lines are not those that the runner wrote")
	}
	return nil
}

func (d *recordDecoder) finish() (*Record, error) {
	if d.last != KindEnd {
		after := "nothing"
		if d.last != "" {
			after = fmt.Sprintf("a line of kind %s", d.last)
		}
		return nil, refuse(ReasonTruncated, "the log ends after %s, without an end line", after)
	}
	return &d.record, nil
}

type validator interface{ validate() error }

func decodeBody(body []byte, v validator) error {
	if err := decodeStrict(body, v); err != nil {
		return refuse(ReasonMalformed, "%v", err)
	}
	if err := v.validate(); err != nil {
		var re *RecordError
		if errors.As(err, &re) {
			return err
		}
		return refuse(ReasonMalformed, "%v", err)
	}
	return nil
}
