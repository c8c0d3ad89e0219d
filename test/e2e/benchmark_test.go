//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/cluster"
)

// TestSeed1 redoes the first seed document at smoke size, from the sample as it stands.
func TestSeed1(t *testing.T) {
	const name = "seed1-mysqlslap-insert-smoke"
	b := runSample(t, name)[0]
	if len(b.Status.Points) != 4 || b.Status.Execution.Progress != "12/12" {
		t.Fatalf("%d points, %s runs; the sample has 4 and 12", len(b.Status.Points), b.Status.Execution.Progress)
	}
	for _, p := range b.Status.Points {
		checkPoint(t, p)
	}
	records := readRecords(t, b)
	if len(records) != 12 {
		t.Fatalf("%d records, want 12", len(records))
	}
	for run, r := range records {
		checkHistograms(t, run, r)
	}
	printGaps(t, records)
	listing, err := kube.Kubectl(t.Context(), "-n", namespace, "get", "dbb", name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(listing, "Complete") || !strings.Contains(listing, "12/12") {
		t.Errorf("kubectl get dbb shows\n%s", listing)
	}
}

func checkPoint(t *testing.T, p v1alpha1.PointResult) {
	t.Helper()
	if p.Iterations != 3 || p.Failed != 0 || p.Errors != 0 || p.ElapsedSeconds == nil || p.LatencyMicros == nil {
		t.Fatalf("point %+v", p)
	}
	var perClient int64
	if err := json.Unmarshal(p.Parameters["load.eventsPerClient"].Raw, &perClient); err != nil {
		t.Fatal(err)
	}
	if want := 3 * int64(p.Clients) * perClient; p.Events != want {
		t.Errorf("%s: %d events, want %d", p.ID, p.Events, want)
	}
	var seconds []float64
	for _, text := range []string{p.ElapsedSeconds.Minimum, p.ElapsedSeconds.Average, p.ElapsedSeconds.Maximum} {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v <= 0 {
			t.Errorf("%s: elapsed %q", p.ID, text)
		}
		seconds = append(seconds, v)
	}
	if !slices.IsSorted(seconds) {
		t.Errorf("%s: minimum, average, maximum = %v", p.ID, seconds)
	}
}

// envelope is what this test reads of a run's key in a results ConfigMap.
type envelope struct {
	Records []contract.Record `json:"records"`
}

func readRecords(t *testing.T, b *v1alpha1.DBBenchmark) map[string]contract.Record {
	t.Helper()
	records := map[string]contract.Record{}
	for _, name := range b.Status.ResultsConfigMaps {
		text, err := kube.Kubectl(t.Context(), "-n", namespace, "get", "configmap", name, "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var cm struct{ Data map[string]string }
		if err := json.Unmarshal([]byte(text), &cm); err != nil {
			t.Fatal(err)
		}
		for run, value := range cm.Data {
			var e envelope
			if err := json.Unmarshal([]byte(value), &e); err != nil || len(e.Records) != 1 {
				t.Fatalf("%s/%s: %d records, %v", name, run, len(e.Records), err)
			}
			records[run] = e.Records[0]
		}
	}
	return records
}

func checkHistograms(t *testing.T, run string, r contract.Record) {
	t.Helper()
	var events int64
	for _, op := range r.Operations {
		h, err := hdrhistogram.Decode([]byte(op.Histogram))
		if err != nil {
			t.Fatalf("%s, %s: %v", run, op.Name, err)
		}
		if h.TotalCount() != op.Count {
			t.Errorf("%s, %s: the histogram holds %d values, the operation counts %d", run, op.Name, h.TotalCount(), op.Count)
		}
		events += op.Count
	}
	if events != r.Result.Events {
		t.Errorf("%s: the operations count %d events, the result %d", run, events, r.Result.Events)
	}
}

// printGaps prints how long the server had nothing to do between two runs: from the exit
// of a runner to the first statement of the next one, and to the first one that is
// measured.
func printGaps(t *testing.T, records map[string]contract.Record) {
	all := slices.SortedFunc(maps.Values(records), func(a, b contract.Record) int { return int(a.Start.UnixNanos - b.Start.UnixNanos) })
	var started, measured []time.Duration
	for i := 1; i < len(all); i++ {
		exit := all[i-1].Result.EndUnixNanos
		started = append(started, time.Duration(all[i].Start.UnixNanos-exit))
		measured = append(measured, time.Duration(all[i].Result.MeasureStartUnixNanos-exit))
	}
	printSpread(t, "from a runner's exit to the next one's first statement", started)
	printSpread(t, "from a runner's exit to the next one's first measured statement", measured)
}

func printSpread(t *testing.T, what string, d []time.Duration) {
	t.Helper()
	slices.Sort(d)
	t.Logf("%s: median %s, from %s to %s", what, d[len(d)/2].Round(time.Millisecond),
		d[0].Round(time.Millisecond), d[len(d)-1].Round(time.Millisecond))
}

// TestStart prints how long users wait: from kubectl apply to the first statement of the
// first run.
func TestStart(t *testing.T) {
	var waits []time.Duration
	for i := range 5 {
		name := "started-" + strconv.Itoa(i)
		applied := time.Now()
		key := apply(t, name, benchmark(name, nil))
		b := waitFor(t, key, time.Minute, "complete", cluster.Ended)
		for _, r := range readRecords(t, b) {
			waits = append(waits, time.Duration(r.Start.UnixNanos-applied.UnixNano()))
		}
	}
	if len(waits) != 5 {
		t.Fatalf("%d records, want 5", len(waits))
	}
	printSpread(t, "from kubectl apply to the first statement", waits)
}

// TestDelete deletes a benchmark in the midst of a run: nothing of it is left, neither
// in the cluster nor in the database.
func TestDelete(t *testing.T) {
	const name = "deleted"
	key := apply(t, name, benchmark(name, map[string]string{"load": "{clients: 4, duration: 5m}"}))
	waitFor(t, key, time.Minute, "running", func(b *v1alpha1.DBBenchmark) bool {
		return b.Status.Execution != nil && b.Status.Execution.ActiveRun != nil
	})
	for end := time.Now().Add(time.Minute); !strings.Contains(sql(t, "SHOW DATABASES"), "e2e"); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatal("the run has not made its database")
		}
	}
	if _, err := kube.Kubectl(t.Context(), "-n", namespace, "delete", "dbb", name, "--timeout=90s"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		left, err := kube.Kubectl(t.Context(), "-n", namespace, "get", "jobs,pods,configmaps", "-l", "dbbench.dev/benchmark="+name, "-o", "name")
		if err != nil {
			t.Fatal(err)
		}
		if left == "" && !strings.Contains(sql(t, "SHOW DATABASES"), "e2e") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left after a minute: %q, databases %q", left, sql(t, "SHOW DATABASES"))
		}
	}
}

// TestManagerKilled deletes the manager's pod again and again: each run is there once.
func TestManagerKilled(t *testing.T) {
	const name = "survivor"
	key := apply(t, name, benchmark(name, map[string]string{"iterations": "6"}))
	for range 3 {
		time.Sleep(2 * time.Second)
		if _, err := kube.Kubectl(t.Context(), "-n", cluster.Namespace, "delete", "pod", "-l", "app.kubernetes.io/component=manager", "--grace-period=0", "--force"); err != nil {
			t.Fatal(err)
		}
	}
	b := waitFor(t, key, 3*time.Minute, "complete", cluster.Ended)
	if !cluster.Complete(b) || b.Status.Points[0].Iterations != 6 || b.Status.Points[0].Events != 6*100 {
		t.Errorf("%s, %+v", cluster.Progress(b), b.Status.Points)
	}
}
