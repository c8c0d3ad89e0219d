package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

func TestJudge(t *testing.T) {
	clients := func(v string) v1alpha1.Parameters {
		return v1alpha1.Parameters{"load.clients": apiextensionsv1.JSON{Raw: []byte(v)}}
	}
	before := NewBaseline("before", []Point{measured("mysql", "1", 4, 120, 120, 120)})
	for _, tc := range []struct {
		name      string
		threshold v1alpha1.Threshold
		baseline  *Baseline
		want      Verdict
		verdicts  string // of the three points
	}{
		{"met everywhere", v1alpha1.Threshold{Metric: MetricThroughput, Min: "50"}, nil, Verdict{Met: 3}, "Passed Passed Passed"},
		{"not met at one", v1alpha1.Threshold{Metric: MetricThroughput, Min: "95"}, nil,
			Verdict{Met: 2, NotMet: []string{"throughput of mariadb at clients=1 is 90.0 events/s, less than 95"}}, "Passed Failed Passed"},
		{"where", v1alpha1.Threshold{Metric: MetricThroughput, Min: "95", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"where, spelt another way", v1alpha1.Threshold{Metric: MetricThroughput, Max: "95", Where: clients("8e0")}, nil,
			Verdict{NotMet: []string{"throughput of mysql at clients=8 is 200.0 events/s, more than 95"}}, "  Failed"},
		{"where nothing is", v1alpha1.Threshold{Metric: MetricThroughput, Min: "1", Where: clients("16")}, nil,
			Verdict{NotJudged: []string{"throughput: no point with clients=16 was measured"}}, "  "},
		{"latency", v1alpha1.Threshold{Metric: MetricLatencyP99, Max: "20ms", Where: clients("1")}, nil,
			Verdict{Met: 1, NotMet: []string{"latency.p99 of mariadb at clients=1 is 24 ms, more than 20ms"}}, "Passed Failed "},
		{"mean", v1alpha1.Threshold{Metric: MetricLatencyMean, Max: "4ms", Where: clients("8")}, nil,
			Verdict{NotMet: []string{"latency.mean of mysql at clients=8 is 5 ms, more than 4ms"}}, "  Failed"},
		{"p50", v1alpha1.Threshold{Metric: MetricLatencyP50, Max: "5ms", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"p90", v1alpha1.Threshold{Metric: MetricLatencyP90, Max: "10ms", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"p95", v1alpha1.Threshold{Metric: MetricLatencyP95, Max: "15ms", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"p99.9", v1alpha1.Threshold{Metric: MetricLatencyP999, Max: "25ms", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"longest", v1alpha1.Threshold{Metric: MetricLatencyMax, Max: "30ms", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"elapsed", v1alpha1.Threshold{Metric: MetricElapsed, Max: "1500ms", Where: clients("8")}, nil,
			Verdict{NotMet: []string{"elapsed of mysql at clients=8 is 2 s, more than 1500ms"}}, "  Failed"},
		{"errors", v1alpha1.Threshold{Metric: MetricErrors, Max: "0", Where: clients("8")}, nil,
			Verdict{NotMet: []string{"errors of mysql at clients=8 is 10, more than 0"}}, "  Failed"},
		{"error rate", v1alpha1.Threshold{Metric: MetricErrorRate, Max: "0.01", Where: clients("8")}, nil, Verdict{Met: 1}, "  Passed"},
		{"ratio to a target", v1alpha1.Threshold{Metric: MetricThroughput, MinRatio: "0.95", To: "mysql", Where: clients("1")}, nil,
			Verdict{Met: 1, NotMet: []string{"throughput of mariadb at clients=1 is 90.0 events/s, with mysql of 100.0 events/s a ratio of 0.900, less than 0.95"}}, "Passed Failed "},
		{"ratio to the baseline", v1alpha1.Threshold{Metric: MetricLatencyP99, MaxRatio: "1.1", To: AgainstBaseline, Where: clients("1")}, before,
			Verdict{NotMet: []string{"latency.p99 of mysql at clients=1 is 20 ms, with Baseline of 16 ms a ratio of 1.250, more than 1.1"},
				NotJudged: []string{"latency.p99 of mariadb at clients=1: Baseline has no such point"}}, "Failed  "},
		{"no baseline yet", v1alpha1.Threshold{Metric: MetricThroughput, MinRatio: "0.95", To: AgainstBaseline}, nil, Verdict{NoBaseline: 1}, "  "},
		{"no baseline yet, but a limit", v1alpha1.Threshold{Metric: MetricThroughput, MinRatio: "0.95", Min: "1", To: AgainstBaseline}, nil,
			Verdict{NoBaseline: 1, Met: 3}, "Passed Passed Passed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			points := []Point{measured("mysql", "1", 5, 100, 100, 100), measured("mariadb", "1", 6, 90, 90, 90), measured("mysql", "8", 5, 200, 200, 200)}
			got := Judge([]v1alpha1.Threshold{tc.threshold}, points, tc.baseline)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if v := fmt.Sprintf("%s %s %s", points[0].Verdict, points[1].Verdict, points[2].Verdict); v != tc.verdicts {
				t.Errorf("verdicts of the points: %q, want %q", v, tc.verdicts)
			}
		})
	}
}

// TestJudgeWithoutNumbers: what was not measured is neither met nor failed.
func TestJudgeWithoutNumbers(t *testing.T) {
	v := Judge([]v1alpha1.Threshold{{Metric: MetricErrors, Max: "0"}}, []Point{{Target: "mysql", Failed: 3}}, nil)
	if v.Met != 0 || len(v.NotMet) != 0 || len(v.NotJudged) != 1 || v.NotJudged[0] != "errors of mysql: no iteration succeeded" {
		t.Errorf("%+v", v)
	}
}

func TestFormatSeconds(t *testing.T) {
	for s, want := range map[float64]string{12.3456: "12.35 s", 0.05: "50 ms", 0.0012345: "1.234 ms", 1e-6: "1 µs", 5e-9: "5 ns", 0: "0 ns"} {
		if got := FormatSeconds(s); got != want {
			t.Errorf("%g: %q, want %q", s, got, want)
		}
	}
}

func TestReadBaseline(t *testing.T) {
	run := envelope(t, "p0001", 1, time.Second, 1, 1)
	text, err := run.Encode()
	if err != nil {
		t.Fatal(err)
	}
	summary, err := json.Marshal(Document{Version: SummaryVersion, Points: Points([]Envelope{run}, nil, 10)})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string]string{
		"results": {run.Key(): text},
		"summary": {SummaryKey: string(summary), CSVKey: "whatever"},
	} {
		b, err := ReadBaseline(name, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, ok := b.find(Point{Target: "mariadb"})
		if v, has := p.Metric(MetricThroughput); !ok || !has || v != 2 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	change := func(old, new string) string { return strings.Replace(string(summary), old, new, 1) }
	for name, tc := range map[string]struct {
		data map[string]string
		says string
	}{
		"empty":                {nil, "neither results nor"},
		"another key":          {map[string]string{"x": text}, "does not end with .json"},
		"another run":          {map[string]string{"p9-i9.json": text}, `of run "p0001-i1"`},
		"broken results":       {map[string]string{run.Key(): text[:50]}, `key "p0001-i1.json"`},
		"a histogram of less":  {map[string]string{run.Key(): strings.Replace(text, `"count":2`, `"count":3`, 1)}, "holds 2 values, but 3"},
		"broken summary":       {map[string]string{SummaryKey: "{"}, "summary.json: unexpected end"},
		"another version":      {map[string]string{SummaryKey: change("/v1", "/v9")}, "this build reads"},
		"a negative number":    {map[string]string{SummaryKey: change(`"eventsPerSecond":2`, `"eventsPerSecond":-2`)}, "iteration 1 is negative"},
		"a number too large":   {map[string]string{SummaryKey: change(`"eventsPerSecond":2`, `"eventsPerSecond":1e999`)}, "cannot unmarshal"},
		"without its elements": {map[string]string{SummaryKey: change(`"elapsedSeconds":{`, `"elapsed":{`)}, "no eventsPerSecond or elapsedSeconds"},
	} {
		if _, err := ReadBaseline("the ConfigMap x", tc.data); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want %q", name, err, tc.says)
		}
	}
}
