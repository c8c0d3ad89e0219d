package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var testRun = Run{
	ID: "p0001-i1", Namespace: "bench", Benchmark: "demo", BenchmarkUID: "5b1f", Execution: "e1", Point: "p0001", Iteration: 1,
}

func testRecord() *Record {
	r := &Record{
		Start: Start{Version: RecordVersion, Run: testRun.ID, Execution: testRun.Execution, BenchmarkUID: testRun.BenchmarkUID,
			UnixNanos: 1, RunnerVersion: "v0"},
		Environment: Environment{ServerVersion: "10.11.19-MariaDB", ServerFlavor: "MariaDB",
			ServerVariables: map[string]string{"innodb_flush_log_at_trx_commit": "1"},
			StatusDeltas:    map[string]int64{"Com_insert": 3}, Runner: RunnerUsage{GOMAXPROCS: 2, ThrottledNanos: -1}},
		Operations: []Operation{
			{Name: "insert", Count: 2, SumNanos: 30, MinNanos: 10, MaxNanos: 20, Histogram: strings.Repeat("QUJD", 2500)},
			{Name: "select", Count: 1, SumNanos: 5, MinNanos: 5, MaxNanos: 5, Histogram: "QUJD"},
		},
		Result: Result{Outcome: OutcomePartial, Failure: &Failure{Class: ClassInterrupted, Message: "stopped", Hint: "again"},
			Clients: 1, ElapsedNanos: 9, Events: 3, Attempts: 3, ErrorsByNumber: map[uint16]int64{1213: 1},
			Warnings: []string{"w"}, Checks: map[string]string{"rows": "102"}},
	}
	for i := range int64(100) {
		r.Environment.ServerVariables[fmt.Sprintf("innodb_a_long_name_of_a_variable_%d", i)] = strings.Repeat("x", 200)
		r.Environment.StatusDeltas[fmt.Sprintf("Innodb_a_long_name_of_a_counter_%d", i)] = i - 50
	}
	for i := range int64(50) {
		r.Series = append(r.Series, Interval{StartNanos: i, WidthNanos: 1, Events: i, P50Nanos: 1, P99Nanos: 2, MaxNanos: 3})
	}
	return r
}

// manyVariables are lines with more variables than any server has.
func manyVariables() string {
	var b strings.Builder
	for i := range MaxNames + 1 {
		fmt.Fprintf(&b, "{\"kind\":\"variables\",\"body\":{\"v%d\":\"\"}}\n", i)
	}
	return b.String()
}

func encodeRecord(t testing.TB, r *Record) string {
	t.Helper()
	var b bytes.Buffer
	e := NewEncoder(&b)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(e.Start(r.Start))
	check(e.Progress(Progress{Phase: PhaseMeasure, PercentDone: 50, Events: 1}))
	check(e.Progress(Progress{Phase: PhaseCleanup, PercentDone: 100, Events: 3}))
	check(e.Environment(r.Environment))
	for _, o := range r.Operations {
		check(e.Operation(o))
	}
	check(e.Series(r.Series))
	check(e.Result(r.Result))
	check(e.End())
	return b.String()
}

func TestRecordRoundTrip(t *testing.T) {
	want := testRecord()
	log := encodeRecord(t, want)
	for i, l := range strings.SplitAfter(log, "\n") {
		if len(l) > MaxLineBytes {
			t.Errorf("line %d is %d bytes long", i+1, len(l))
		}
	}
	// Diagnostics of standard error arrive between the lines of the record.
	mixed := "starting\n" + strings.Replace(log, "\n", "\n[mysql] closing\n", 3) + "bye\n"
	for name, in := range map[string]string{"plain": log, "mixed with diagnostics": mixed} {
		got, err := ReadRecord(strings.NewReader(in), testRun)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

func TestReadRecordRefuses(t *testing.T) {
	good := encodeRecord(t, testRecord())
	lines := strings.SplitAfter(good, "\n")
	lines = lines[:len(lines)-1] // nothing follows the last newline
	without := func(i int) string {
		return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "")
	}
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	seriesLine := strings.Index(good, `{"kind":"series"`)
	part := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, `{"kind":"histogram"`) })

	tests := []struct {
		name, log string
		want      Reason
	}{
		{"empty", "", ReasonTruncated},
		{"diagnostics alone", "panic: no\n", ReasonTruncated},
		{"no end", without(len(lines) - 1), ReasonTruncated},
		{"cut in the end line", strings.TrimSuffix(good, "}}\n"), ReasonTruncated},
		{"a progress line lost", without(1), ReasonChecksumMismatch},
		{"an altered number", replace(`"elapsedNanos":9`, `"elapsedNanos":8`), ReasonChecksumMismatch},
		{"another version", replace(RecordVersion, "dbbench.dev/record/v9"), ReasonWrongVersion},
		{"another run", replace(`"run":"p0001-i1"`, `"run":"p0002-i1"`), ReasonWrongRun},
		{"another execution", replace(`"execution":"e1"`, `"execution":"e2"`), ReasonWrongRun},
		{"another benchmark", replace(`"benchmarkUID":"5b1f"`, `"benchmarkUID":"ffff"`), ReasonWrongRun},
		{"no start", without(0), ReasonMalformed},
		{"no environment", without(3), ReasonMalformed},
		{"no result", without(len(lines) - 2), ReasonMalformed},
		{"start twice", lines[0] + good, ReasonMalformed},
		{"a line after the end", good + lines[1], ReasonMalformed},
		{"another record after the end", good + good, ReasonMalformed},
		{"series before operations", good[:strings.Index(good, `{"kind":"operation"`)] + good[seriesLine:], ReasonMalformed},
		{"a histogram part lost", without(part), ReasonMalformed},
		{"the last histogram part lost", without(part + 2), ReasonMalformed},
		{"variables lost", without(4), ReasonChecksumMismatch},
		{"variables before the environment", strings.Join(lines[:2], "") + lines[4] + strings.Join(lines[2:], ""), ReasonMalformed},
		{"variables without end", strings.Join(lines[:4], "") + manyVariables() + strings.Join(lines[4:], ""), ReasonTooLarge},
		{"variables in the environment", replace(`"serverFlavor"`, `"serverVariables":{"a":"b"},"serverFlavor"`), ReasonMalformed},
		{"unknown kind", replace(`"kind":"progress"`, `"kind":"gossip"`), ReasonMalformed},
		{"unknown field", replace(`"percentDone"`, `"percentageDone"`), ReasonMalformed},
		{"trailing data", replace("}}\n", "}} {}\n"), ReasonMalformed},
		{"not JSON", replace(`{"kind":"progress"`, `{kind:"progress"`), ReasonMalformed},
		{"not a number", replace(`"count":2`, `"count":NaN`), ReasonMalformed},
		{"a number beyond all", replace(`"sumNanos":`, `"sumNanos":1e400,"sumNanos":`), ReasonMalformed},
		{"a count that is no integer", replace(`"count":2`, `"count":2.5`), ReasonMalformed},
		{"a null record", replace(`"body":{`, `"body":null,"x":{`), ReasonMalformed},
		{"negative count", replace(`"count":2`, `"count":-2`), ReasonMalformed},
		{"negative interval", replace(`"p50Nanos":1`, `"p50Nanos":-1`), ReasonMalformed},
		{"operations and result disagree", replace(`"events":3,"errors":0,"attempts"`, `"events":4,"errors":0,"attempts"`), ReasonMalformed},
		{"unknown outcome", replace(`"outcome":"Partial"`, `"outcome":"Fine"`), ReasonMalformed},
		{"unknown class", replace(`"class":"Interrupted"`, `"class":"Tired"`), ReasonMalformed},
		{"succeeded with a failure", replace(`"outcome":"Partial"`, `"outcome":"Succeeded"`), ReasonMalformed},
		{"unknown phase", replace(`"phase":"Measure"`, `"phase":"Lunch"`), ReasonMalformed},
		{"operation twice", replace(`"name":"select"`, `"name":"insert"`), ReasonMalformed},
		{"not base64", replace(`"data":"QUJD"`, `"data":"Q{JD"`), ReasonMalformed},
		{"parts without end", replace(`"parts":1`, `"parts":1000000`), ReasonTooLarge},
		{"a long line", `{"kind":"` + strings.Repeat("x", MaxLineBytes) + "\"}\n" + good, ReasonTooLarge},
		{"a long log", strings.Repeat("x", MaxRecordBytes) + "\n" + good, ReasonTooLarge},
		{"a long log of short lines", strings.Repeat("x\n", MaxRecordBytes/2+1) + good, ReasonTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ReadRecord(strings.NewReader(tt.log), testRun)
			var re *RecordError
			if !errors.As(err, &re) {
				t.Fatalf("got record %v, error %v, want a RecordError", r != nil, err)
			}
			if re.Reason != tt.want {
				t.Errorf("got %v, want reason %s", re, tt.want)
			}
		})
	}
}

func TestReadRecordLimits(t *testing.T) {
	many := testRecord()
	many.Series = make([]Interval, MaxIntervals+1)
	crowd := testRecord()
	for i := range MaxOperations {
		crowd.Operations = append(crowd.Operations, Operation{Name: fmt.Sprint(i)})
	}
	for name, r := range map[string]*Record{"intervals": many, "operations": crowd} {
		_, err := ReadRecord(strings.NewReader(encodeRecord(t, r)), testRun)
		var re *RecordError
		if !errors.As(err, &re) || re.Reason != ReasonTooLarge {
			t.Errorf("%s: got %v, want TooLarge", name, err)
		}
	}
}

func TestReadRecordPassesReaderErrorOn(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader("x\n"), errorReader{broken})
	if _, err := ReadRecord(r, testRun); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestEncoderKeepsLinesShort(t *testing.T) {
	for name, text := range map[string]string{
		"ASCII": strings.Repeat("x", 100000), "wide": strings.Repeat("é", 100000),
		"escapes": strings.Repeat("\x01\"\\", 100000), "invalid": strings.Repeat("\xff", 100000),
	} {
		var b bytes.Buffer
		r := Result{Outcome: OutcomeFailed, Failure: &Failure{Class: ClassWorkloadFailed, Message: text, Hint: text},
			Warnings: []string{text, text, text, text, text, text, text, text, text, text, text, text, text, text, text, text}}
		if err := NewEncoder(&b).Result(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(b.String(), "…") {
			t.Errorf("%s: the cut is not marked", name)
		}
		m, err := EncodeTerminationMessage(TerminationMessage{Run: "r", Outcome: OutcomeFailed, Failure: r.Failure})
		if err != nil || len(m) > MaxTerminationBytes {
			t.Errorf("%s: termination message of %d bytes, error %v", name, len(m), err)
		}
		if _, err := DecodeTerminationMessage(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	big := Operation{Name: "x", Histogram: strings.Repeat("A", MaxHistogramParts*MaxHistogramPartBytes+1)}
	if err := NewEncoder(io.Discard).Operation(big); err == nil {
		t.Error("an endless histogram was encoded")
	}
	if err := NewEncoder(io.Discard).Environment(Environment{ServerVersion: strings.Repeat("x", MaxLineBytes)}); err == nil {
		t.Error("a line over the limit was encoded")
	}
}

func TestReadProgress(t *testing.T) {
	progress := func(events int64) string {
		var b bytes.Buffer
		if err := NewEncoder(&b).Progress(Progress{Phase: PhaseMeasure, Events: events}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	tests := []struct {
		name, log string
		want      int64 // -1: none
	}{
		{"empty", "", -1},
		{"first line cut", "ents\":3}}\n" + progress(4), 4},
		{"last line cut", progress(5) + progress(6)[:20], 5},
		{"latest of several", progress(5) + "noise\n" + progress(7) + `{"kind":"result"}` + "\n", 7},
		{"a long line between", progress(5) + "{" + strings.Repeat("x", MaxLineBytes) + "\n" + progress(8), 8},
		{"an invalid one", progress(5) + `{"kind":"progress","body":{"phase":"Lunch"}}` + "\n", 5},
	}
	for _, tt := range tests {
		p, err := ReadProgress(strings.NewReader(tt.log))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := int64(-1)
		if p != nil {
			got = p.Events
		}
		if got != tt.want {
			t.Errorf("%s: got %d events, want %d", tt.name, got, tt.want)
		}
	}
}

func TestTerminationMessage(t *testing.T) {
	want := TerminationMessage{Version: TerminationVersion, Run: "r1", Outcome: OutcomeFailed,
		Failure: &Failure{Class: ClassAuthenticationFailed, MySQLError: 1045, Message: "m", Hint: "h"}}
	b, err := EncodeTerminationMessage(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeTerminationMessage(b)
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
	for name, in := range map[string]string{
		"empty": "", "another version": strings.Replace(string(b), "/v1", "/v2", 1),
		"unknown class": strings.Replace(string(b), "AuthenticationFailed", "Oops", 1),
		"trailing":      string(b) + "x", "long": strings.Repeat(" ", MaxTerminationBytes) + string(b),
	} {
		if _, err := DecodeTerminationMessage([]byte(in)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	good := encodeRecord(f, testRecord())
	f.Add([]byte(good))
	f.Add([]byte(good[:len(good)/2]))
	f.Add([]byte("{\n"))
	f.Add([]byte(strings.Replace(good, `"count":2`, `"count":NaN`, 1)))
	f.Add([]byte(strings.Replace(good, `"count":2`, `"count":-2`, 1)))
	f.Add([]byte(strings.Replace(good, RecordVersion, "dbbench.dev/record/v9", 1)))
	f.Add([]byte(strings.Replace(good, `"run":"p0001-i1"`, `"run":"p0002-i1"`, 1)))
	f.Add([]byte(good + good))
	f.Add([]byte(`{"kind":"` + strings.Repeat("x", MaxLineBytes) + "\"}\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := ReadRecord(bytes.NewReader(log), testRun)
		var re *RecordError
		if err != nil {
			if !errors.As(err, &re) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		// What is accepted is a whole record: it survives a round trip.
		again, err := ReadRecord(strings.NewReader(encodeRecord(t, r)), testRun)
		if err != nil || again.Result.Events != r.Result.Events {
			t.Fatalf("accepted, but not after encoding it again: %v", err)
		}
		var count int64
		for _, o := range r.Operations {
			count += o.Count
		}
		if count != r.Result.Events {
			t.Fatalf("operations count %d, events %d", count, r.Result.Events)
		}
	})
}
