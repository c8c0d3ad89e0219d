package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, text []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (write it anew with -update):\n%s", path, diff)
	}
}

// histogram of so many milliseconds.
func histogram(t testing.TB, highest time.Duration, millis ...int64) string {
	t.Helper()
	h := hdrhistogram.New(1000, highest.Nanoseconds(), 3)
	for _, m := range millis {
		if err := h.RecordValue(m * 1e6); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// envelope is a run of some events that took so many milliseconds each.
func envelope(t testing.TB, point string, iteration int32, elapsed time.Duration, millis ...int64) Envelope {
	var sum int64
	for _, m := range millis {
		sum += m * 1e6
	}
	n := int64(len(millis))
	return Envelope{
		Version: EnvelopeVersion, Run: fmt.Sprintf("%s-i%d", point, iteration), Point: point, Target: "mariadb", Iteration: iteration, Clients: 2,
		Finished: time.Unix(int64(iteration), 0),
		Records: []contract.Record{{
			Operations:  []contract.Operation{{Name: "insert", Count: n, SumNanos: sum, MinNanos: slices.Min(millis) * 1e6, MaxNanos: slices.Max(millis) * 1e6, Histogram: histogram(t, time.Hour, millis...)}},
			Environment: contract.Environment{Runner: contract.RunnerUsage{ThrottledNanos: -1}},
			Result:      contract.Result{Outcome: contract.OutcomeSucceeded, ElapsedNanos: elapsed.Nanoseconds(), Events: n},
		}},
	}
}

// TestSummarise: percentiles come from the merged histograms; the median of the medians
// of these iterations would be another.
func TestSummarise(t *testing.T) {
	failed := envelope(t, "p0001", 4, time.Second, 1)
	failed.Failure = &Failure{Reason: "WorkloadFailed"}
	s := Summarise([]Envelope{
		envelope(t, "p0002", 1, time.Second, 1),
		envelope(t, "p0001", 2, 2*time.Second, 10, 10),
		envelope(t, "p0001", 1, time.Second, 1, 1, 1, 1, 1, 1),
		envelope(t, "p0001", 3, 1500*time.Millisecond, 20, 20, 20),
		failed,
	}, []string{"mariadb"}, 10)
	text, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.yaml", text)
}

func TestWarnings(t *testing.T) {
	e := envelope(t, "p0001", 1, time.Second, 1)
	e.Records[0].Environment.Runner.ThrottledNanos = int64(100 * time.Millisecond)
	e.Records[0].Result.Warnings = []string{"3 latencies were beyond an hour"}
	p := Summarise([]Envelope{e}, nil, 10).Points[0]
	if text := strings.Join(p.Warnings, "\n"); !strings.Contains(text, "throttled") || !strings.Contains(text, "3 latencies") {
		t.Errorf("warnings: %q", p.Warnings)
	}
}

// TestBounds: a status has room for some hundred points; the rest is counted.
func TestBounds(t *testing.T) {
	var all []Envelope
	one := envelope(t, "p", 1, time.Second, 1)
	for i := range 1000 {
		one.Point = fmt.Sprintf("p%04d", i)
		all = append(all, one)
	}
	s := Summarise(all, nil, 10)
	if len(s.Points)+int(s.Truncated) != 1000 || len(s.Points) < 100 {
		t.Fatalf("%d points and %d more", len(s.Points), s.Truncated)
	}
	text, err := yaml.Marshal(s.Points)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 200<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestChangedResult: what somebody has edited is neither counted nor fatal.
func TestChangedResult(t *testing.T) {
	e := envelope(t, "p0001", 1, time.Second, 1)
	e.Records[0].Operations[0].Histogram = "nonsense"
	p := Summarise([]Envelope{e, envelope(t, "p0001", 2, time.Second, 1)}, nil, 10).Points[0]
	if p.Iterations != 1 || p.Failed != 1 || !strings.Contains(strings.Join(p.Warnings, ""), "p0001-i1 was changed") {
		t.Errorf("%+v", p)
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*contract.Record)
		says   string
	}{
		{"good", func(*contract.Record) {}, ""},
		{"not base64", func(r *contract.Record) { r.Operations[0].Histogram = "*" }, "base64"},
		{"short", func(r *contract.Record) { r.Operations[0].Histogram = "QUJD" }, "short"},
		{"not zlib", func(r *contract.Record) { r.Operations[0].Histogram = "QUJDREVGR0hJSktMTU5P" }, "zlib"},
		{"too wide", func(r *contract.Record) { r.Operations[0].Histogram = histogram(t, 1000*time.Hour, 1) }, "spans"},
		{"a bomb", func(r *contract.Record) { r.Operations[0].Histogram = bomb(t) }, "PayloadLength"},
		{"a sum that cannot be", func(r *contract.Record) { r.Operations[0].SumNanos = 1 << 60 }, "not between its minimum and its maximum"},
		{"another count", func(r *contract.Record) { r.Operations[0].Count = 7 }, "holds 1 values, but 7"},
		{"no time", func(r *contract.Record) { r.Result.ElapsedNanos = 0 }, "not positive"},
		{"no event", func(r *contract.Record) { r.Operations, r.Result.Events = nil, 0 }, "no event"},
		{"failed without events", func(r *contract.Record) {
			r.Operations, r.Result = nil, contract.Result{Outcome: contract.OutcomeFailed}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := envelope(t, "p", 1, time.Second, 1).Records[0]
			tc.change(&r)
			err := Check(&r)
			if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error: %v, want %q", err, tc.says)
			}
		})
	}
}

// TestLoss: the note of a loss has a key of its own and is no result.
func TestLoss(t *testing.T) {
	lost := envelope(t, "p0001", 1, time.Second, 1)
	lost.Lost, lost.Failure = 2, &Failure{Reason: "RunnerLost", Message: "evicted"}
	if want := lost.Run + ".lost-2.json"; lost.Key() != want {
		t.Errorf("key %s, want %s", lost.Key(), want)
	}
	text, err := lost.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(lost.Run+".json", text); err == nil {
		t.Error("it is taken for a result")
	}
	s := Summarise([]Envelope{lost, envelope(t, "p0001", 1, time.Second, 1)}, []string{lost.Target}, 10)
	if len(s.Points) != 1 || s.Points[0].Failed != 0 || s.Points[0].Iterations != 1 {
		t.Errorf("points: %+v", s.Points)
	}
}

// bomb is a histogram of some kilobytes that unpacks to megabytes.
func bomb(t *testing.T) string {
	t.Helper()
	var packed, header bytes.Buffer
	if err := binary.Write(&header, binary.BigEndian, struct {
		Cookie, Length, Offset, Digits int32
		Lowest, Highest                int64
		Ratio                          float64
	}{0x1c849303, 64 << 20, 0, 3, 1000, int64(time.Hour), 1}); err != nil {
		t.Fatal(err)
	}
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(header.Bytes())
	_, _ = z.Write(make([]byte, 64<<20))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	outer := binary.BigEndian.AppendUint32(nil, 0x1c849304)
	outer = binary.BigEndian.AppendUint32(outer, uint32(packed.Len()))
	return base64.StdEncoding.EncodeToString(append(outer, packed.Bytes()...))
}

// FuzzCheck: whatever a record's histogram is, checking it neither panics nor takes what
// cannot be aggregated.
func FuzzCheck(f *testing.F) {
	good := envelope(f, "p", 1, time.Second, 1, 2, 3).Records[0].Operations[0]
	f.Add(good.Histogram, good.Count, good.SumNanos)
	f.Add(good.Histogram[:len(good.Histogram)/2], good.Count, good.SumNanos)
	f.Add("", int64(1), int64(1))
	f.Fuzz(func(t *testing.T, text string, count, sum int64) {
		e := envelope(t, "p", 1, time.Second, 1, 2, 3)
		op := &e.Records[0].Operations[0]
		op.Histogram, op.Count, op.SumNanos = text, count, sum
		if count < 0 || sum < 0 || Check(&e.Records[0]) != nil {
			return // the codec refuses what is negative
		}
		p := Points([]Envelope{e}, nil, 10)[0]
		if len(p.Iterations) != 1 || p.LatencyNanos != nil && (p.LatencyNanos.Mean < 0 || p.LatencyNanos.Max < 0 || p.LatencyNanos.P99 > p.LatencyNanos.Max) {
			t.Errorf("%+v", p)
		}
	})
}

func TestEnvelope(t *testing.T) {
	e := envelope(t, "p0001", 1, time.Second, 1)
	e.Finished = time.Unix(1, 0).UTC()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(e.Key(), text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Error(diff)
	}
	for key, text := range map[string]string{"other.json": text, "p0001-i1": text, "x.json": "{", "y.json": "{}"} {
		if _, err := Decode(key, text); err == nil {
			t.Errorf("%s is taken", key)
		}
	}
}

func TestWriteMatrix(t *testing.T) {
	raw := func(v string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(v)} }
	b := &v1alpha1.DBBenchmark{}
	b.Spec.Targets = []v1alpha1.Target{{Name: "mariadb"}}
	b.Spec.Sweep = &v1alpha1.Sweep{Axes: []v1alpha1.Axis{
		{Path: "load.clients", Values: []apiextensionsv1.JSON{raw("1"), raw("10")}},
		{Path: "load.eventsPerClient", Values: []apiextensionsv1.JSON{raw("1000"), raw("1000000")}},
	}}
	// Numbers of the document that the form is taken from; one cell is not there yet.
	for _, c := range []struct{ clients, events, seconds string }{
		{"1", "1000", "0.583"}, {"1", "1000000", "658.066"}, {"10", "1000", "1.414"},
	} {
		b.Status.Points = append(b.Status.Points, v1alpha1.PointResult{
			ID: "p", Target: "mariadb", Parameters: v1alpha1.Parameters{"load.clients": raw(c.clients), "load.eventsPerClient": raw(c.events)},
			ElapsedSeconds:  &v1alpha1.ElapsedSeconds{Average: c.seconds, Minimum: c.seconds, Maximum: c.seconds},
			EventsPerSecond: &v1alpha1.Spread{Median: "1.000"},
		})
	}
	b.Status.PointsTruncated, b.Status.ResultsConfigMaps = 1, []string{"bench-results-0"}
	var out bytes.Buffer
	if err := WriteMatrix(&out, b); err != nil {
		t.Fatal(err)
	}
	b.Spec.Sweep = nil
	if err := WriteMatrix(&out, b); err != nil {
		t.Fatal(err)
	}
	b.Status.Points = nil
	if err := WriteMatrix(&out, b); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.txt", out.Bytes())
}

// TestWriteMatrixOfTargets compares targets along one axis, of a load that ends by time.
func TestWriteMatrixOfTargets(t *testing.T) {
	raw := func(v string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(v)} }
	b := &v1alpha1.DBBenchmark{}
	b.Spec.Targets = []v1alpha1.Target{{Name: "mysql"}, {Name: "mariadb"}}
	b.Spec.Load.Duration = &v1alpha1.Duration{Duration: time.Minute}
	b.Spec.Sweep = &v1alpha1.Sweep{Axes: []v1alpha1.Axis{{Path: "load.clients", Values: []apiextensionsv1.JSON{raw("8"), raw("4096")}}}}
	for _, c := range []struct{ target, clients, rate string }{
		{"mysql", "8", "79153.300"}, {"mariadb", "8", "81818.800"}, {"mariadb", "4096", "151485.000"},
	} {
		b.Status.Points = append(b.Status.Points, v1alpha1.PointResult{
			ID: "p", Target: c.target, Parameters: v1alpha1.Parameters{"load.clients": raw(c.clients)},
			ElapsedSeconds:  &v1alpha1.ElapsedSeconds{Average: "60.000"},
			EventsPerSecond: &v1alpha1.Spread{Median: c.rate},
		})
	}
	var out bytes.Buffer
	if err := WriteMatrix(&out, b); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix-targets.txt", out.Bytes())
}

// TestMemo: what is remembered is what is found afresh, as runs come in and change.
func TestMemo(t *testing.T) {
	memo := &Memo{}
	var runs []Envelope
	check := func(what string, spread int32) {
		t.Helper()
		want, got := Summarise(runs, nil, spread), memo.Summarise(runs, nil, spread)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	for i := range int32(3) {
		for _, point := range []string{"p0001", "p0002"} {
			runs = append(runs, envelope(t, point, i+1, time.Duration(i+1)*time.Second, int64(i+1)))
			check("a run more", 10)
		}
	}
	check("another limit of the spread", 1000)
	runs[2] = envelope(t, "p0001", 2, time.Minute, 7)
	check("the record of a run was changed", 10)
	runs[3].Records, runs[3].Failure = nil, &Failure{Reason: "RunnerLost"}
	check("a run has failed", 10)
	runs = runs[:1]
	check("runs are gone", 10)
	if p := &runs[0].Records[0]; len(memo.points) == 0 || &memo.points[pointKey{"p0001", runs[0].Target}].runs[0].Records[0] != p {
		t.Error("nothing is remembered")
	}
}
