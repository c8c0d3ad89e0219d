//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/resources"
)

// The executions of testdata/executions, which were measured in a real cluster: of the
// benchmark of testdata/bench.yaml, run twice.
const (
	firstExecution  = "c2568fde"
	secondExecution = "b218189e"
)

// restore puts what was measured into a namespace.
func restore(t *testing.T, ns string) {
	t.Helper()
	readJSON := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", "executions", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	b := create(t, ns, func(b *v1alpha1.DBBenchmark) { readJSON("status", &b.Status) })
	for _, execution := range []string{firstExecution, secondExecution} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: resources.ResultsName(b, execution, 0), Labels: resources.Labels(b, execution, resources.PurposeResults),
		}}
		readJSON(execution, &cm.Data)
		if err := admin.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExecutions(t *testing.T) {
	ns := namespace(t)
	restore(t, ns)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"executions-results", []string{"results", "nightly"}},
		{"executions-previous", []string{"results", "nightly@previous"}},
		{"executions-wide", []string{"results", "nightly", "-o", "wide"}},
		{"executions-csv", []string{"results", "nightly", "-o", "csv"}},
		{"executions-benchstat", []string{"export", "nightly@" + firstExecution, "--format", "benchstat"}},
		{"executions-compare", []string{"compare", "nightly@previous", "nightly"}},
		{"executions-unknown", []string{"results", "nightly@0000"}},
		{"executions-compare-unknown", []string{"compare", "nightly", "weekly"}},
		{"executions-compare-file", []string{"compare", "missing.json", "nightly"}},
		{"executions-compare-nothing", []string{"compare", "testdata/bench.yaml", "nightly"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden(t, c.name, inCluster(t.Context(), ns, c.args...).transcript(c.args))
		})
	}
}

// TestTablesFit: what people read stays within a terminal of 80 columns.
func TestTablesFit(t *testing.T) {
	ns := namespace(t)
	restore(t, ns)
	for _, args := range [][]string{
		{"get"}, {"results", "nightly"}, {"compare", "nightly@previous", "nightly"}, {"plan", "-f", "testdata/bench.yaml"},
	} {
		o := inCluster(t.Context(), ns, args...)
		for line := range strings.Lines(o.stdout) {
			if n := len([]rune(strings.TrimRight(line, " \n"))); n > 80 {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
	}
}

// TestExportIsRead: what export writes, in a file or a ConfigMap, compare reads.
func TestExportIsRead(t *testing.T) {
	ns := namespace(t)
	restore(t, ns)
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")
	for file, name := range map[string]string{before: "nightly@previous", after: "nightly"} {
		if o := inCluster(t.Context(), ns, "export", name, "-o", file); o.code != 0 {
			t.Fatalf("%+v", o)
		}
	}
	cm := filepath.Join(dir, "cm.yaml")
	text, err := os.ReadFile(filepath.Join("testdata", "executions", firstExecution+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cm, append([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: "), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	want := table(inCluster(t.Context(), ns, "compare", "nightly@previous", "nightly"))
	for _, args := range [][]string{{before, after}, {before, "nightly"}, {cm, after}} {
		o := inCluster(t.Context(), ns, "compare", args[0], args[1])
		if got := table(o); o.code != 0 || got != want {
			t.Errorf("%v: code %d\n%s%s\nwant\n%s", args, o.code, o.stderr, got, want)
		}
	}
}

// table is an output without its first line, which names the files.
func table(o outcome) string {
	_, rest, _ := strings.Cut(o.stdout, "\n")
	return rest
}

func TestReportFile(t *testing.T) {
	ns := namespace(t)
	restore(t, ns)
	path := filepath.Join(t.TempDir(), "nightly.html")
	if o := inCluster(t.Context(), ns, "report", "nightly", "-o", path); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o := inCluster(t.Context(), ns, "report", "nightly@"+secondExecution, "-o", "-")
	if !bytes.HasPrefix(page, []byte("<!doctype html>")) || !strings.HasPrefix(o.stdout, "<!doctype html>") {
		t.Errorf("no page: %.80s, %.80s", page, o.stdout)
	}
	if !bytes.Contains(page, []byte("nightly")) {
		t.Error("the page does not name the benchmark")
	}
}

func TestCompleteExecutions(t *testing.T) {
	ns := namespace(t)
	restore(t, ns)
	o := dbbench(t.Context(), "", "__complete", "--kubeconfig", kubeconfig, "-n", ns, "compare", "nightly@")
	want := "nightly@previous\nnightly@" + secondExecution + "\nnightly@" + firstExecution + "\n:4\n"
	if o.stdout != want {
		t.Errorf("got %q, want %q", o.stdout, want)
	}
}
