package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchfmt"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

func raw(v any) apiextensionsv1.JSON {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return apiextensionsv1.JSON{Raw: text}
}

// sample is an execution of several targets over axes, with values of a made-up server
// that is saturated at 64 clients.
type sample struct {
	targets    []string
	axes       []v1alpha1.Axis
	iterations int32
	seconds    int
	events     int
}

func (s sample) input() Input {
	random := rand.New(rand.NewPCG(1, 2))
	in := Input{
		Name: "mysql-or-mariadb", Namespace: "db", Execution: "4c1e9a02", Workload: "oltp/ReadOnly",
		Started: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Completed: time.Date(2026, 11, 20, 10, 12, 30, 0, time.UTC),
		Spec: v1alpha1.DBBenchmarkSpec{Iterations: s.iterations, Sweep: &v1alpha1.Sweep{Axes: s.axes}},
	}
	for _, t := range s.targets {
		in.Spec.Targets = append(in.Spec.Targets, v1alpha1.Target{Name: t})
	}
	for i, parameters := range product(s.axes) {
		for t, target := range s.targets {
			for iteration := range s.iterations {
				in.Runs = append(in.Runs, s.run(random, i, t, target, parameters, iteration+1))
			}
		}
	}
	return in
}

func product(axes []v1alpha1.Axis) []v1alpha1.Parameters {
	all := []v1alpha1.Parameters{{}}
	for _, a := range axes {
		var next []v1alpha1.Parameters
		for _, p := range all {
			for _, v := range a.Values {
				with := v1alpha1.Parameters{a.Path: v}
				for path, other := range p {
					with[path] = other
				}
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

func (s sample) run(random *rand.Rand, point, t int, target string, parameters v1alpha1.Parameters, iteration int32) results.Envelope {
	clients := int32(8)
	_ = json.Unmarshal(parameters["load.clients"].Raw, &clients)
	rate := 80000 * float64(clients) / float64(clients+24) * (1 + 0.08*float64(t)) * (1 + 0.02*random.NormFloat64())
	h := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
	var sum, least, most int64 = 0, math.MaxInt64, 0
	for range s.events {
		v := int64(float64(clients) / rate * 1e9 * math.Exp(0.35*random.NormFloat64()))
		if random.IntN(100) == 0 {
			v *= 6
		}
		_ = h.RecordValue(v)
		sum, least, most = sum+v, min(least, v), max(most, v)
	}
	encoded, _ := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	version := map[string]string{"mysql": "9.7.0", "mariadb": "11.8.3-MariaDB"}[target]
	r := contract.Record{
		Start: contract.Start{Run: "r"},
		Environment: contract.Environment{
			ServerVersion: version, ServerFlavor: map[bool]string{true: "MySQL", false: "MariaDB"}[target == "mysql"],
			ServerVariables: map[string]string{"innodb_buffer_pool_size": "1073741824", "innodb_flush_log_at_trx_commit": "1",
				"innodb_io_capacity": map[bool]string{true: "10000", false: "200"}[target == "mysql"], "version": version},
			ServerVariablesSHA256: strings.Repeat(fmt.Sprintf("%x", 10+t), 64), StatusDeltas: map[string]int64{"Com_select": int64(s.events), "Questions": int64(s.events)},
			Runner: contract.RunnerUsage{GOMAXPROCS: 4, Cores: 4, CPUModel: "Test CPU", CPUUserNanos: int64(float64(s.events) / rate * 1e9 * 3), ThrottledNanos: -1, Node: "node-1"},
		},
		Operations: []contract.Operation{{Name: "select", Count: int64(s.events), SumNanos: sum, MinNanos: least, MaxNanos: most, Histogram: string(encoded)}},
		Result: contract.Result{Outcome: contract.OutcomeSucceeded, Clients: clients, Events: int64(s.events), Attempts: int64(s.events),
			ElapsedNanos: int64(float64(s.events) / rate * 1e9)},
	}
	for i := range s.seconds {
		r.Series = append(r.Series, contract.Interval{StartNanos: int64(i) * 1e9, WidthNanos: 1e9, Events: int64(rate * (1 + 0.05*random.NormFloat64()))})
	}
	id := fmt.Sprintf("p%04d", point+1)
	return results.Envelope{
		Version: results.EnvelopeVersion, Run: fmt.Sprintf("%s-%s-i%d", id, target, iteration), Point: id, Target: target, Parameters: parameters,
		Kubernetes: "v1.37.2",
		Iteration:  iteration, Clients: clients, Finished: time.Unix(int64(point)*100+int64(iteration), 0), Records: []contract.Record{r},
	}
}

func axis(path string, values ...any) v1alpha1.Axis {
	a := v1alpha1.Axis{Path: path}
	for _, v := range values {
		a.Values = append(a.Values, raw(v))
	}
	return a
}

// comparison is a sweep of threads on two servers.
func comparison() Input {
	s := sample{targets: []string{"mysql", "mariadb"}, axes: []v1alpha1.Axis{axis("load.clients", 8, 16, 32, 64, 128, 256, 512)}, iterations: 4, seconds: 30, events: 2000}
	in := s.input()
	in.Spec.Thresholds = []v1alpha1.Threshold{{Metric: "throughput", MinRatio: "0.95", To: "mysql"}, {Metric: "latency.p99", Max: "10ms", Where: v1alpha1.Parameters{"load.clients": raw(512)}}}
	return in
}

// matrixInput is a sweep of clients and queries on one server.
func matrixInput() Input {
	s := sample{targets: []string{"mariadb"}, axes: []v1alpha1.Axis{axis("load.clients", 1, 10, 30, 50, 100), axis("load.eventsPerClient", 1000, 10000)}, iterations: 3, seconds: 5, events: 500}
	in := s.input()
	in.Name, in.Workload = "seed1-mysqlslap-insert", "slap/Write"
	return in
}

func mustBuild(t testing.TB, in Input) Files {
	t.Helper()
	f, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSummary(t *testing.T) {
	f := mustBuild(t, comparison())
	b, err := results.ReadBaseline("report", f.Data())
	if err != nil {
		t.Fatal(err)
	}
	var d results.Document
	if err := json.Unmarshal(f.JSON, &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != results.SummaryVersion || len(d.Points) != 14 || d.PointsLeftOut != 0 || len(d.Environments) != 2 {
		t.Fatalf("%+v", d)
	}
	if len(d.Differences) != 2 || d.Differences[0].Name != "innodb_io_capacity" || d.Differences[0].Values["mysql"] != "10000" {
		t.Errorf("differences: %+v", d.Differences)
	}
	// Seven points and three metrics of the second target against the first.
	if len(d.Comparisons) != 21 {
		t.Fatalf("%d comparisons", len(d.Comparisons))
	}
	verdicts := map[string]int{}
	for _, c := range d.Comparisons {
		verdicts[c.Verdict]++
		if c.Against != "mysql" || c.P <= 0 || c.Interval == nil || c.Interval.Low > c.Ratio || c.Interval.High < c.Ratio {
			t.Errorf("%+v", c)
		}
	}
	if verdicts[results.Faster] < 5 || verdicts[results.NoDifference] == 0 || verdicts[results.TooFew] != 0 {
		t.Errorf("%v", verdicts)
	}
	if d.Thresholds == nil || d.Thresholds.Met != 14 || len(d.Thresholds.NotMet) != 2 {
		t.Errorf("thresholds: %+v", d.Thresholds)
	}
	// The report is a baseline: compared with itself, nothing differs.
	in := comparison()
	in.Baseline = b
	for _, c := range mustBuild(t, in).Document.Comparisons[21:] {
		if c.Against != results.AgainstBaseline || c.Verdict != results.NoDifference || c.Ratio != 1 {
			t.Fatalf("against itself: %+v", c)
		}
	}
}

func TestCSV(t *testing.T) {
	in := matrixInput()
	in.Spec.Sweep.Axes = append(in.Spec.Sweep.Axes, axis("workload.slap.engine", "=HYPERLINK(1)"))
	for i := range in.Runs {
		in.Runs[i].Parameters["workload.slap.engine"] = raw("=HYPERLINK(1)")
	}
	lines, err := csv.NewReader(bytes.NewReader(mustBuild(t, in).CSV)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 11 || strings.Join(lines[0][:6], " ") != "point target load.clients load.eventsPerClient workload.slap.engine clients" {
		t.Fatalf("%d lines: %v", len(lines), lines[0])
	}
	if first := lines[1]; strings.Join(first[:9], " ") != "p0001 mariadb 1 1000 '=HYPERLINK(1) 1 3 0 1500" {
		t.Errorf("%v", first)
	}
}

// TestBenchstat reads the text with benchstat's own parser.
func TestBenchstat(t *testing.T) {
	f := mustBuild(t, comparison())
	r := benchfmt.NewReader(bytes.NewReader(f.Benchstat), "benchstat.txt")
	names, better := map[string]int{}, map[string]bool{}
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			names[string(rec.Name)]++
			if v, ok := rec.Value("events/s"); !ok || v < 1000 {
				t.Errorf("%s: %g events/s", rec.Name, v)
			}
			if v, ok := rec.Value("p99-sec/op"); !ok || v <= 0 || v > 1 {
				t.Errorf("%s: p99 of %g s", rec.Name, v)
			}
			if rec.GetConfig("workload") != "oltp/ReadOnly" {
				t.Errorf("workload %q", rec.GetConfig("workload"))
			}
		case *benchfmt.UnitMetadata:
			better[rec.Unit+" "+rec.Value] = true
		default:
			t.Errorf("%T: %v", rec, rec)
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if len(names) != 14 || names["OltpReadOnly/target=mariadb/clients=64"] != 4 {
		t.Errorf("%v", names)
	}
	if !better["events/s higher"] {
		t.Errorf("units: %v", better)
	}
}

func TestPage(t *testing.T) {
	in := comparison()
	in.Runs[0].Records[0].Result.Warnings = []string{`<script>alert("x")</script>`}
	in.Runs[0].Records[0].Environment.ServerVersion = `"><img src=x onerror=alert(1)>`
	html := string(mustBuild(t, in).HTML)
	for _, want := range []string{
		"<h1>mysql-or-mariadb</h1>", "Thresholds not met", "coordinated omission", "Throughput by clients", "Latency p99 by clients",
		"Latency distribution", "Throughput over time", "Ratio to mysql", "faster", "Settings that differ", "node node-1, Kubernetes v1.37.2", "innodb_io_capacity", "&lt;script&gt;",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	for _, never := range []string{"<script", "<img", "http://", "https://", "NaN", "Inf", "ZgotmplZ", "%!"} {
		if i := strings.Index(html, never); i >= 0 {
			t.Errorf("the page holds %q: …%s…", never, html[max(0, i-80):min(len(html), i+80)])
		}
	}
	if html := string(mustBuild(t, matrixInput()).HTML); !strings.Contains(html, "the same per 1,000 queries of a client") {
		t.Error("the page does not hold the tables of clients and queries")
	}
}

// TestNothing: an execution without a single result has a report too.
func TestNothing(t *testing.T) {
	in := Input{Name: "none", Failure: "AuthenticationFailed: the server refuses the user"}
	f := mustBuild(t, in)
	if !strings.Contains(string(f.HTML), "the server refuses the user") || !strings.Contains(string(f.JSON), `"points": []`) {
		t.Errorf("%s", f.JSON)
	}
}
