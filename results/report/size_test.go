package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// shardLimit is what the controller fills a ConfigMap with; the API takes 1 MiB.
const shardLimit = 900 << 10

// TestLargestSweep: 4,096 points of three iterations stay within the limits of a status
// and of a report, which says what it leaves out.
func TestLargestSweep(t *testing.T) {
	in := sample{targets: []string{"mariadb"}, axes: []v1alpha1.Axis{axis("load.clients", 1)}, iterations: 3, seconds: 300, events: 1000}.input()
	three := in.Runs
	axes := []v1alpha1.Axis{axis("load.clients"), axis("load.eventsPerClient")}
	for i := range 64 {
		axes[0].Values = append(axes[0].Values, raw(i+1))
		axes[1].Values = append(axes[1].Values, raw((i+1)*1000))
	}
	in.Spec.Sweep.Axes, in.Runs = axes, nil
	for i, parameters := range product(axes) {
		for _, run := range three {
			run.Point, run.Parameters = fmt.Sprintf("p%04d", i+1), parameters
			run.Run = fmt.Sprintf("%s-mariadb-i%d", run.Point, run.Iteration)
			in.Runs = append(in.Runs, run)
		}
	}
	if len(in.Runs) != 4096*3 {
		t.Fatalf("%d runs", len(in.Runs))
	}
	for _, r := range in.Runs[:100] {
		if text, err := r.Encode(); err != nil || len(text) > 64<<10 {
			t.Fatalf("a result of %d bytes, error %v", len(text), err)
		}
	}
	summary := results.Summarise(in.Runs, []string{"mariadb"}, 10)
	text, err := json.Marshal(summary.Points)
	if err != nil || len(text) > 200<<10 || len(summary.Points)+int(summary.Truncated) != 4096 || len(summary.Points) < 200 {
		t.Errorf("a status of %d bytes with %d points and %d more, error %v", len(text), len(summary.Points), summary.Truncated, err)
	}
	in.Limit = shardLimit
	f := mustBuild(t, in)
	if n := f.size(); n > shardLimit || n < shardLimit/4 {
		t.Errorf("a report of %d bytes", n)
	}
	d := f.Document
	if len(d.Points)+d.PointsLeftOut != 4096 || len(d.Points) < 200 || !strings.Contains(string(f.HTML), "more points are left out here") {
		t.Errorf("%d points and %d more", len(d.Points), d.PointsLeftOut)
	}
	t.Logf("%d points in a report of %d bytes", len(d.Points), f.size())
	if _, err := results.ReadBaseline("report", f.Data()); err != nil {
		t.Error(err)
	}
}

// TestManyLines: charts stay within the bounds of what can be told apart.
func TestManyLines(t *testing.T) {
	axes := []v1alpha1.Axis{axis("load.clients", 1, 2, 4, 8, 16, 32, 64, 128, 256, 512), axis("workload.slap.loadType", "Read", "Write", "Key", "Update", "Mixed", "x", "y", "z", "u", "v")}
	s := sample{targets: []string{"mariadb"}, axes: axes, iterations: 1, seconds: 3, events: 20}
	in := s.input()
	graphs, left := axisGraphs(in, results.Points(in.Runs, []string{"mariadb"}, 10))
	if len(graphs) != 2*2*maxCharts || left != 8 {
		t.Errorf("%d graphs, %d left out", len(graphs), left)
	}
	for _, g := range graphs {
		if len(g.lines) > maxLines {
			t.Errorf("%s: %d lines", g.title, len(g.lines))
		}
	}
	// Values that are no numbers stand side by side.
	if last := graphs[len(graphs)-1]; len(last.names) != 10 || last.names[0] != "Read" {
		t.Errorf("%s: %v", last.title, last.names)
	}
}
