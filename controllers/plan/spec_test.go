package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dbbench.dev/operator/api/v1alpha1"
)

func TestDefaultReachesNestedFields(t *testing.T) {
	spec := parse(t, "load: {}")
	got := fmt.Sprintln(spec.Load.Clients, spec.Iterations, spec.Order, spec.Runner.Replicas, spec.RunTimeout.Duration, *spec.HistoryLimit,
		spec.Targets[0].Database, spec.Targets[0].TLS.Mode, spec.Targets[0].CredentialsSecretRef.PasswordKey, spec.Workload.Slap.LoadType, *spec.Workload.Slap.ExactCounts)
	if want := "1 3 RoundRobin 1 1h0m0s 3 dbbench Preferred password Mixed true\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if spec.Targets[0].Port != 0 {
		t.Errorf("port is %d: a default in the schema would exclude serviceRef", spec.Targets[0].Port)
	}
}

func TestDefaultKeepsWhatIsSet(t *testing.T) {
	spec := parse(t, "workload: {slap: {preloadRows: 0, exactCounts: false}}\nmaxSpreadPercent: 0")
	if *spec.Workload.Slap.PreloadRows != 0 || *spec.Workload.Slap.ExactCounts || *spec.MaxSpreadPercent != 0 {
		t.Errorf("got %+v", spec.Workload.Slap)
	}
	again := spec.DeepCopy()
	if err := Default(again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, again); diff != "" {
		t.Error(diff)
	}
}

// TestExpandSetsDefaults: a spec that no API server has seen gives the same runs.
func TestExpandSetsDefaults(t *testing.T) {
	bare := &v1alpha1.DBBenchmarkSpec{
		Targets:  []v1alpha1.Target{{Name: "a", Host: "db", CredentialsSecretRef: v1alpha1.CredentialsSecretReference{Name: "s"}}},
		Workload: v1alpha1.Workload{Slap: &v1alpha1.Slap{AutoIncrement: true}},
	}
	got, err := Expand(bare)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Expand(parse(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if bare.Iterations != 0 {
		t.Error("Expand changed its argument")
	}
}

// TestSupported: what is valid is taken.
func TestSupported(t *testing.T) {
	for _, text := range []string{
		"thresholds: [{metric: throughput, min: '1'}]", "baseline: {previous: true}",
		"suspend: true", "historyLimit: 1", "cleanup: Never", "onFailure: Continue", "runTimeout: 5m", "maxSpreadPercent: 5",
		"runner: {template: {image: x, nodeSelector: {a: b}}}", "load: {clients: 2, events: 10, eventsPerClient: 5, duration: 1s, warmup: 1s}",
	} {
		if _, err := Expand(parse(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPace(t *testing.T) {
	for text, path := range map[string]string{
		"load: {rate: 100}":                                                          "",
		"load: {rate: 100, arrivals: Uniform}":                                       "",
		"load: {arrivals: Uniform}":                                                  "spec.load.arrivals",
		"load: {thinkTime: 1s}":                                                      "",
		"load: {thinkTime: 1s, rate: 1}":                                             "spec.load.thinkTime",
		"load: {clients: 2, ramp: [{for: 1s, clients: 1}]}":                          "",
		"load: {clients: 2, ramp: [{for: 1s, clients: 3}]}":                          "spec.load.ramp[0].clients",
		"load: {clients: 2, ramp: [{for: 0s, clients: 2}]}":                          "spec.load.ramp[0].for",
		"load: {rate: 9, ramp: [{for: 1s, rate: 3}]}":                                "",
		"load: {ramp: [{for: 1s, rate: 3}]}":                                         "spec.load.ramp[0].rate",
		"load: {rate: 9, ramp: [{for: 1s, clients: 1}]}":                             "spec.load.ramp[0].clients",
		"sweep: {axes: [{path: load.rate, values: [1, 2]}]}":                         "",
		"load: {thinkTime: 1s}\nsweep: {axes: [{path: load.rate, values: [1]}]}":     "spec.load.thinkTime",
		"load: {arrivals: Poisson}\nsweep: {axes: [{path: load.rate, values: [1]}]}": "",
		"load: {clients: 4, ramp: [{for: 1s, clients: 3}]}\nsweep: {axes: [{path: load.clients, values: [4, 2]}]}": "spec.load.ramp[0].clients",
	} {
		_, err := Expand(parse(t, text))
		var fault *SpecError
		switch {
		case path == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case path != "" && (!errors.As(err, &fault) || fault.Reason != v1alpha1.ReasonInvalidSpec || fault.Path != path):
			t.Errorf("%s: got %v, want a fault of %s", text, err, path)
		}
	}
}

func TestStatementsMustBeThere(t *testing.T) {
	for text, path := range map[string]string{
		"{key: k}":                          "spec.workload.sql.configMapKeyRef.name",
		"{name: c, key: k, optional: true}": "spec.workload.sql.configMapKeyRef.optional",
		"{name: c, key: k}":                 "",
	} {
		_, err := Expand(parse(t, "workload: {slap: null, sql: {configMapKeyRef: "+text+"}}"))
		var fault *SpecError
		if path == "" && err != nil || path != "" && (!errors.As(err, &fault) || fault.Path != path) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestSharesOfPods(t *testing.T) {
	p := point{id: "p0001", load: v1alpha1.Load{Rate: new(int64(2))}}
	if err := checkShares(3, p); err == nil || !strings.Contains(err.Error(), "spec.load.rate: 2 events per second cannot be shared by 3 pods") {
		t.Errorf("got %v", err)
	}
	if err := checkShares(2, p); err != nil {
		t.Error(err)
	}
}

func TestWorkloadName(t *testing.T) {
	for want, w := range map[string]v1alpha1.Workload{
		"slap/Write":     {Slap: &v1alpha1.Slap{LoadType: v1alpha1.SlapWrite}},
		"oltp/ReadWrite": {OLTP: &v1alpha1.OLTP{Script: "ReadWrite"}},
		"linkbench":      {LinkBench: &v1alpha1.LinkBench{}},
		"payload/Insert": {Payload: &v1alpha1.Payload{Operation: v1alpha1.PayloadInsert}},
		"sql":            {SQL: &v1alpha1.SQL{}},
		"":               {},
	} {
		if got := WorkloadName(w); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOrderAlternatesTargets(t *testing.T) {
	spec := &v1alpha1.DBBenchmarkSpec{Targets: []v1alpha1.Target{{Name: "a"}, {Name: "b"}}, Iterations: 2}
	points := []point{{id: "p0001"}, {id: "p0002"}}
	for o, want := range map[v1alpha1.Order]string{
		v1alpha1.OrderRoundRobin: "p0001-a-i1 p0001-b-i1 p0002-a-i1 p0002-b-i1 p0001-a-i2 p0001-b-i2 p0002-a-i2 p0002-b-i2",
		v1alpha1.OrderSequential: "p0001-a-i1 p0001-a-i2 p0001-b-i1 p0001-b-i2 p0002-a-i1 p0002-a-i2 p0002-b-i1 p0002-b-i2",
	} {
		spec.Order = o
		if got := ids(order(spec, points)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", o, got, want)
		}
	}
}

// TestExpandProperties holds, for sweeps drawn at random: as many runs as the axes
// span less what is excluded; every id and every combination of values once.
func TestExpandProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"load.clients", "load.events", "workload.slap.uniqueQueries", "workload.slap.commitEvery"}
	for range 30 {
		spec := parse(t, "")
		spec.Iterations = random.Int32N(4) + 1
		spec.Sweep = &v1alpha1.Sweep{}
		total, kept := 1, 1
		drop := v1alpha1.Parameters{}
		for _, i := range random.Perm(len(paths))[:random.IntN(len(paths))+1] {
			a := v1alpha1.Axis{Path: paths[i]}
			n := random.IntN(4) + 1
			for v := range n {
				a.Values = append(a.Values, jsonValue(fmt.Sprint(v+1)))
			}
			spec.Sweep.Axes = append(spec.Sweep.Axes, a)
			total *= n
			if random.IntN(2) == 0 {
				drop[a.Path] = jsonValue(fmt.Sprintf("%d.0", random.IntN(n)+1))
			} else {
				kept *= n
			}
		}
		want := total
		if len(drop) > 0 && total > kept {
			spec.Sweep.Exclude = []v1alpha1.Parameters{drop}
			want -= kept
		}
		checkRuns(t, spec, want*int(spec.Iterations))
	}
}

func checkRuns(t *testing.T, spec *v1alpha1.DBBenchmarkSpec, want int) {
	t.Helper()
	runs, err := Expand(spec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Expand(spec)
	if err != nil || !cmp.Equal(runs, again) {
		t.Fatalf("the same spec gave different runs: %v", err)
	}
	seen := map[string]bool{}
	for _, r := range runs {
		var text strings.Builder
		for _, a := range spec.Sweep.Axes {
			fmt.Fprintf(&text, "%s ", r.Parameters[a.Path].Raw)
		}
		seen[r.ID], seen[fmt.Sprint(text.String(), r.Iteration)] = true, true
	}
	if len(runs) != want || len(seen) != 2*want {
		t.Errorf("got %d runs with %d ids and combinations, want %d: %+v", len(runs), len(seen), want, spec.Sweep)
	}
}
