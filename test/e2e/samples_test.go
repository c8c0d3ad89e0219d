//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/test/cluster"
)

// runSample applies a file of config/samples as it stands, but for the namespace of the
// servers, and returns its benchmarks when all are complete.
func runSample(t *testing.T, file string) []*v1alpha1.DBBenchmark {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kube.Root, "config/samples", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifests := string(text)
	for _, server := range []string{"mariadb", "mysql"} {
		manifests = strings.ReplaceAll(manifests, "host: "+server+"\n", "host: "+server+"."+serverNamespace+".svc\n")
	}
	documents := strings.Split(manifests, "\n---\n")
	var all []*v1alpha1.DBBenchmark
	for _, document := range documents {
		all = append(all, applySample(t, document))
	}
	for i, b := range all {
		all[i] = waitForSample(t, b)
	}
	return all
}

func applySample(t *testing.T, document string) *v1alpha1.DBBenchmark {
	t.Helper()
	var b v1alpha1.DBBenchmark
	if err := yaml.UnmarshalStrict([]byte(document), &b); err != nil {
		t.Fatal(err)
	}
	b.Namespace = apply(t, b.Name, document).Namespace
	return &b
}

func waitForSample(t *testing.T, b *v1alpha1.DBBenchmark) *v1alpha1.DBBenchmark {
	t.Helper()
	ended := waitFor(t, types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, 10*time.Minute, "complete", cluster.Ended)
	if !cluster.Complete(ended) {
		t.Fatal(cluster.Progress(ended))
	}
	var table strings.Builder
	if err := results.WriteMatrix(&table, ended); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", b.Name, table.String())
	for _, p := range ended.Status.Points {
		if p.Failed != 0 || p.Errors != 0 || p.Events == 0 || p.Iterations != b.Spec.Iterations {
			t.Errorf("%s, %s on %s: %d events in %d runs, %d failed, %d errors", b.Name, p.ID, p.Target, p.Events, p.Iterations, p.Failed, p.Errors)
		}
	}
	return ended
}

// TestSeed2 redoes the sweep of sizes over engines.
func TestSeed2(t *testing.T) {
	if all := runSample(t, "seed2-payload-engines-smoke"); len(all) != 3 {
		t.Errorf("%d benchmarks, the sample has 3", len(all))
	}
}

// TestSeed3Sysbench compares MySQL with MariaDB, with two load generators at once.
func TestSeed3Sysbench(t *testing.T) {
	b := runSample(t, "seed3-mysql-vs-mariadb-sysbench-smoke")[0]
	if len(b.Status.Points) != 8 {
		t.Errorf("%d points, the sample has 4 on each of 2 targets", len(b.Status.Points))
	}
	var skews []time.Duration
	for _, p := range b.Status.Points {
		skews = append(skews, time.Duration(p.StartSkewMicros)*time.Microsecond)
	}
	printSpread(t, "between the starts of the pods of a run, the longest of each point", skews)
	report := readReport(t, b)
	for _, says := range []string{"mysql", "mariadb", "Ratio", "Mann-Whitney", "Kubernetes v1."} {
		if !strings.Contains(report["report.html"], says) {
			t.Errorf("report.html does not say %q", says)
		}
	}
	t.Log("\n" + report["benchstat.txt"])
}

// readReport reads the report of a benchmark's execution.
func readReport(t *testing.T, b *v1alpha1.DBBenchmark) map[string]string {
	t.Helper()
	text, err := kube.Kubectl(t.Context(), "-n", namespace, "get", "configmap", b.Status.ReportConfigMap, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var cm struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(text), &cm); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"report.html", "summary.json", "summary.csv", "benchstat.txt"} {
		if cm.Data[key] == "" {
			t.Errorf("%s has no %s", b.Status.ReportConfigMap, key)
		}
	}
	return cm.Data
}

// TestSeed3LinkBench compares MySQL with MariaDB on a social graph.
func TestSeed3LinkBench(t *testing.T) {
	b := runSample(t, "seed3-linkbench-smoke")[0]
	if len(b.Status.Points) != 2 {
		t.Errorf("%d points, the sample has 1 on each of 2 targets", len(b.Status.Points))
	}
}

// TestSeed4 puts the same rows into MySQL and MariaDB.
func TestSeed4(t *testing.T) {
	b := runSample(t, "seed4-identical-inserts-smoke")[0]
	if len(b.Status.Points) != 4 {
		t.Errorf("%d points, the sample has 2 on each of 2 targets", len(b.Status.Points))
	}
	for _, p := range b.Status.Points {
		if p.ContentIdentical == nil || !*p.ContentIdentical {
			t.Errorf("%s on %s: contentIdentical is %v", p.ID, p.Target, p.ContentIdentical)
		}
	}
}
