package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
)

// parse reads a spec from YAML, laid over a minimal one, and sets its defaults.
func parse(t testing.TB, text string) *v1alpha1.DBBenchmarkSpec {
	t.Helper()
	var spec v1alpha1.DBBenchmarkSpec
	base := "targets: [{name: a, host: db, credentialsSecretRef: {name: s}}]\nworkload: {slap: {autoIncrement: true}}\n"
	for _, y := range []string{base, text} {
		if err := yaml.Unmarshal([]byte(y), &spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := Default(&spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func ids(runs []Run) string {
	var all []string
	for _, r := range runs {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

func TestExpandOrder(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"no sweep", "iterations: 2", "p0001-a-i1 p0001-a-i2"},
		{"round robin repeats after all points", "iterations: 2\nsweep: {axes: [{path: load.clients, values: [1, 2]}]}",
			"p0001-a-i1 p0002-a-i1 p0001-a-i2 p0002-a-i2"},
		{"sequential repeats a point first", "iterations: 2\norder: Sequential\nsweep: {axes: [{path: load.clients, values: [1, 2]}]}",
			"p0001-a-i1 p0001-a-i2 p0002-a-i1 p0002-a-i2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runs, err := Expand(parse(t, tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(runs); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestExpandSetsValues(t *testing.T) {
	runs, err := Expand(parse(t, `
iterations: 1
sweep:
  axes:
  - {path: load.clients, values: [1, 10]}
  - {path: load.eventsPerClient, values: [1000, 1e4]}
  - {path: workload.slap.engine, values: [InnoDB, MyISAM]}
  exclude:
  - {load.clients: 1e1, load.eventsPerClient: 10000.0}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range runs {
		got = append(got, fmt.Sprint(r.Load.Clients, " ", *r.Load.EventsPerClient, " ", r.Workload.Slap.Engine, " ", *r.Workload.Slap.PreloadRows))
	}
	want := []string{
		"1 1000 InnoDB 100", "1 1000 MyISAM 100", "1 10000 InnoDB 100", "1 10000 MyISAM 100",
		"10 1000 InnoDB 100", "10 1000 MyISAM 100",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if raw := string(runs[2].Parameters["load.eventsPerClient"].Raw); raw != "10000" {
		t.Errorf("the parameter is %s", raw)
	}
}

// TestExpandGroupsByDataset: what is measured on the same data is done together, in the
// order asked for.
func TestExpandGroupsByDataset(t *testing.T) {
	for prepare, want := range map[string]string{
		"":                "p0001-a-i1/d0001 p0003-a-i1/d0001 p0001-a-i2/d0001 p0003-a-i2/d0001 p0002-a-i1/d0002 p0004-a-i1/d0002 p0002-a-i2/d0002 p0004-a-i2/d0002",
		"prepare: PerRun": "p0001-a-i1/ p0002-a-i1/ p0003-a-i1/ p0004-a-i1/ p0001-a-i2/ p0002-a-i2/ p0003-a-i2/ p0004-a-i2/",
	} {
		runs, err := Expand(parse(t, prepare+`
iterations: 2
workload: {slap: null, oltp: {}}
sweep: {axes: [{path: load.clients, values: [1, 2]}, {path: workload.oltp.tables, values: [1, 4]}]}
`))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, r.ID+"/"+r.Dataset)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", prepare, strings.Join(got, " "), want)
		}
	}
}

// TestShape: fields that do not shape the data do not divide it.
func TestShape(t *testing.T) {
	for _, tc := range []struct {
		workload, path, values string
		datasets               int
	}{
		{"oltp: {}", "workload.oltp.script", "[ReadOnly, ReadWrite, PointSelect]", 1},
		{"oltp: {}", "workload.oltp.script", "[ReadOnly, BulkInsert]", 2},
		{"oltp: {compat: sysbench-0.5}", "workload.oltp.script", "[ReadOnly, RandomPoints]", 2},
		{"oltp: {}", "workload.oltp.engine", "[InnoDB, innodb]", 1},
		{"oltp: {}", "workload.oltp.tableSize", "[10, 20]", 2},
		{"oltp: {}", "load.clients", "[10, 20]", 1},
		{"oltp: {script: BulkInsert}", "load.clients", "[10, 20]", 2},
		{"oltp: {}", "workload.oltp.pointSelects", "[10, 20]", 1},
		{"linkbench: {}", "workload.linkbench.maxID", "[1001, 2001]", 2},
		{"linkbench: {}", "workload.linkbench.loaders", "[1, 2]", 1},
		{"payload: {}", "workload.payload.commitEvery", "[1, 2]", 1},
		{"payload: {tablePerClient: true}", "load.clients", "[1, 2]", 2},
		{"payload: {}", "load.clients", "[1, 2]", 1},
		{"sql: {statements: [{name: a, sql: SELECT 1}]}", "workload.sql.setup", "[CREATE TABLE a (id INT), CREATE TABLE b (id INT)]", 2},
		{"sql: {statements: [{name: a, sql: SELECT 1}]}", "workload.sql.order", "[Weighted, Sequential]", 1},
	} {
		runs, err := Expand(parse(t, fmt.Sprintf("prepare: PerDataset\niterations: 1\nworkload: {slap: null, %s}\nsweep: {axes: [{path: %s, values: %s}]}", tc.workload, tc.path, tc.values)))
		if err != nil {
			t.Errorf("%s: %v", tc.path, err)
			continue
		}
		seen := map[string]bool{}
		for _, r := range runs {
			seen[r.Dataset] = true
		}
		if len(seen) != tc.datasets {
			t.Errorf("%s over %s %s: %d datasets, want %d", tc.workload, tc.path, tc.values, len(seen), tc.datasets)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	axis := func(path, values string) string {
		return fmt.Sprintf("sweep: {axes: [{path: %s, values: %s}]}", path, values)
	}
	for _, tc := range []struct{ name, spec, path, says string }{
		{"unknown path", axis("load.clientz", "[1]"), "spec.sweep.axes[0].path", `no field "clientz"; it has arrivals, clients`},
		{"path to an object", axis("workload.slap", "[1]"), "spec.sweep.axes[0].path", "has fields of its own; name one of them: autoIncrement"},
		{"path of another workload", axis("workload.oltp.tables", "[1]"), "spec.sweep.axes[0].path", "the workload of this spec is slap"},
		{"path outside", axis("iterations", "[1]"), "spec.sweep.axes[0].path", "should match"},
		{"path to a list", axis("load.ramp", "[1]"), "spec.sweep.axes[0].path", "a list or a map"},
		{"path twice", "sweep: {axes: [{path: load.clients, values: [1]}, {path: load.clients, values: [2]}]}", "spec", "one axis only"},
		{"word for a number", axis("load.clients", "[1, many]"), "spec.sweep.axes[0].values[1]", "load.clients"},
		{"fraction for a whole number", axis("load.clients", "[1.5]"), "spec.sweep.axes[0].values[0]", "load.clients"},
		{"zero clients", axis("load.clients", "[0]"), "spec.sweep.axes[0].values[0]", "greater than or equal to 1"},
		{"number for a word", axis("workload.slap.engine", "[1]"), "spec.sweep.axes[0].values[0]", "engine"},
		{"not of the enumeration", axis("workload.slap.loadType", "[Insert]"), "spec.sweep.axes[0].values[0]", `"Write"`},
		{"not a duration", axis("load.duration", "[10]"), "spec.sweep.axes[0].values[0]", "duration"},
		{"null", axis("load.clients", "[null]"), "spec.sweep.axes[0].values[0]", "null is not a value"},
		{"object", axis("load.clients", "[{a: 1}]"), "spec.sweep.axes[0].values[0]", "not a single value"},
		{"number beyond 64 bits", axis("load.events", "[1e19]"), "spec.sweep.axes[0].values[0]", "int64"},
		{"same value twice", axis("load.clients", "[1, 10, 1.0]"), "spec.sweep.axes[0].values[2]", "the same as"},
		{"rule across fields", axis("workload.slap.loadType", "[Key]") + "\nworkload: {slap: {autoIncrement: false}}", "spec.workload.slap", "needs autoIncrement"},
		{"exclude without axis", "sweep: {axes: [{path: load.clients, values: [1]}], exclude: [{load.events: 1}]}", "spec.sweep.exclude[0].load.events", "no axis"},
		{"exclude of no value", "sweep: {axes: [{path: load.clients, values: [1]}], exclude: [{load.clients: 2}]}", "spec.sweep.exclude[0].load.clients", "not among the values"},
		{"everything excluded", "sweep: {axes: [{path: load.clients, values: [1]}], exclude: [{load.clients: 1}]}", "spec.sweep.exclude", "leaves no point"},
		{"too many points", "sweep: {axes: [{path: load.clients, values: " + numbers(70) + "}, {path: load.events, values: " + numbers(70) + "}]}", "spec.sweep.axes", "more than 4096"},
		{"empty exclude", "sweep: {axes: [{path: load.clients, values: [1]}], exclude: [{}]}", "spec.sweep.exclude[0]", "empty"},
		{"too many runs", "iterations: 100\nsweep: {axes: [{path: load.clients, values: " + numbers(700) + "}]}", "spec.iterations", "more than 65536 runs"},
		{"not valid without a sweep", "workload: {slap: {loadType: Key, autoIncrement: false}}", "spec.workload.slap", "needs autoIncrement"},
		{"latency without a unit", "thresholds: [{metric: latency.p99, max: '50'}]", "spec.thresholds[0].max", "is not a duration"},
		{"throughput with a unit", "thresholds: [{metric: throughput, min: 50ms}]", "spec.thresholds[0].min", "is not a number"},
		{"a broken number of errors", "thresholds: [{metric: errors, max: '0.5'}]", "spec.thresholds[0].max", "whole number"},
		{"an error rate in percent", "thresholds: [{metric: errorRate, max: '5'}]", "spec.thresholds[0].max", "more than 1"},
		{"min above max", "thresholds: [{metric: elapsed, min: 2s, max: 1500ms}]", "spec.thresholds[0].min", "greater than max"},
		{"threshold on no point", "thresholds: [{metric: elapsed, max: 2s, where: {load.clients: 2}}]", "spec.thresholds[0].where.load.clients", "no axis"},
		{"cron of four fields", "schedule: {cron: '0 3 * *'}", "spec.schedule.cron", "five fields"},
		{"cron with a zone", "schedule: {cron: 'TZ=0'}", "spec.schedule.cron", "in timeZone"},
		{"cron interval", "schedule: {cron: '@every 1h'}", "spec.schedule.cron", "five fields"},
		{"time zone", "schedule: {cron: '@daily', timeZone: Europe/Atlantis}", "spec.schedule.timeZone", "IANA"},
		{"a point with fewer clients than pods", "runner: {replicas: 3}\nsweep: {axes: [{path: load.clients, values: [4, 2]}]}", "spec", "every runner pod needs a client"},
		{"slap's data for several runs", "prepare: PerDataset", "spec.prepare", "not possible with slap"},
		{"a schedule that never comes", "schedule: {cron: '0 0 30 2 *'}", "spec.schedule.cron", "never"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Expand(parse(t, tc.spec))
			var fault *SpecError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a *SpecError", err)
			}
			if fault.Path != tc.path || !strings.Contains(fault.Message, tc.says) {
				t.Errorf("got %s: %s\nwant %s and %q", fault.Path, fault.Message, tc.path, tc.says)
			}
		})
	}
}

func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestRunIDsFitALabel(t *testing.T) {
	long := strings.Repeat("x", 62)
	seen := map[string]bool{}
	for _, target := range []string{long + "a", long + "b"} {
		runs, err := Expand(parse(t, "iterations: 100\ntargets: [{name: "+target+", host: db, credentialsSecretRef: {name: s}}]"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if len(r.ID) > 63 || seen[r.ID] {
				t.Fatalf("run id %q has %d characters, seen: %v", r.ID, len(r.ID), seen[r.ID])
			}
			seen[r.ID] = true
		}
	}
}

func TestHash(t *testing.T) {
	base := Hash(parse(t, "iterations: 2"))
	for text, same := range map[string]bool{
		"iterations: 2\nsuspend: true":         true,
		"iterations: 2\nhistoryLimit: 9":       true,
		"iterations: 2\ncleanup: Never":        true,
		"iterations: 3":                        false,
		"iterations: 2\nload: {clients: 2}":    false,
		"iterations: 2\norder: Sequential":     false,
		"iterations: 2\nrunner: {replicas: 2}": false,
	} {
		if got := Hash(parse(t, text)) == base; got != same {
			t.Errorf("%q: same hash: %v, want %v", text, got, same)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("load.clients", `1`, `"x"`)
	f.Add("workload.slap.engine", `"InnoDB"`, `1e400`)
	f.Add("load.duration", `"1s"`, `{"a":[]}`)
	f.Add("load..x", `0.1`, ``)
	f.Fuzz(func(t *testing.T, path, first, second string) {
		spec := parse(t, "")
		spec.Sweep = &v1alpha1.Sweep{Axes: []v1alpha1.Axis{{Path: path}}}
		for _, raw := range []string{first, second} {
			spec.Sweep.Axes[0].Values = append(spec.Sweep.Axes[0].Values, jsonValue(raw))
		}
		runs, err := Expand(spec)
		again, errAgain := Expand(spec)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || !cmp.Equal(runs, again) {
			t.Fatal("the same spec gave different runs")
		}
		var fault *SpecError
		if err != nil && (!errors.As(err, &fault) || fault.Path == "" || fault.Message == "") {
			t.Fatalf("%v is not a *SpecError that names a field", err)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	spec := parse(b, "iterations: 3\nsweep: {axes: [{path: load.clients, values: "+numbers(64)+"}, {path: load.events, values: "+numbers(64)+"}]}")
	for b.Loop() {
		if _, err := Expand(spec); err != nil {
			b.Fatal(err)
		}
	}
}
