package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"dbbench.dev/operator/results"
)

// csvOf is a line for each point. Times are in the unit that the column names.
func csvOf(d results.Document) []byte {
	paths := axisPaths(d.Points)
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	header := append([]string{"point", "target"}, paths...)
	// Writing to a buffer does not fail.
	_ = w.Write(append(header, "clients", "iterations", "failed", "events", "errors",
		"elapsed_avg_s", "elapsed_min_s", "elapsed_max_s",
		"throughput_median_per_s", "throughput_min_per_s", "throughput_max_per_s", "throughput_spread_percent",
		"latency_mean_us", "latency_p50_us", "latency_p90_us", "latency_p95_us", "latency_p99_us", "latency_p999_us", "latency_max_us",
		"verdict", "warnings"))
	for _, p := range d.Points {
		line := []string{p.ID, p.Target}
		for _, path := range paths {
			line = append(line, cell(p.Parameters[path].Raw))
		}
		line = append(line, integer(int64(p.Clients)), integer(int64(len(p.Iterations))), integer(int64(p.Failed)), integer(p.Events), integer(p.Errors))
		_ = w.Write(append(append(line, figures(p)...), p.Verdict, strings.Join(p.Warnings, "; ")))
	}
	w.Flush()
	return out.Bytes()
}

func figures(p results.Point) []string {
	all := make([]string, 14)
	if e := p.ElapsedSeconds; e != nil {
		copy(all, []string{fixed(e.Average, 6), fixed(e.Minimum, 6), fixed(e.Maximum, 6)})
	}
	if t := p.EventsPerSecond; t != nil {
		copy(all[3:], []string{fixed(t.Median, 3), fixed(t.Minimum, 3), fixed(t.Maximum, 3), fixed(t.SpreadPercent, 2)})
	}
	if l := p.LatencyNanos; l != nil {
		for i, nanos := range []int64{l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max} {
			all[7+i] = fixed(float64(nanos)/1000, 1)
		}
	}
	return all
}

// cell is a JSON value as a field. A text that a spreadsheet would take for a formula
// is quoted as one.
func cell(raw []byte) string {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
		if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			text = "'" + text
		}
	}
	return text
}

func axisPaths(points []results.Point) []string {
	paths := map[string]bool{}
	for _, p := range points {
		for path := range p.Parameters {
			paths[path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// benchstatOf is a line for each iteration in the format of Go's benchmarks, so that
// benchstat compares two executions, or with -col /target two targets.
func benchstatOf(d results.Document) []byte {
	var out bytes.Buffer
	for _, c := range [][2]string{{"benchmark", d.Benchmark}, {"workload", d.Workload}, {"execution", d.Execution}} {
		if c[1] != "" {
			fmt.Fprintf(&out, "%s: %s\n", c[0], oneLine(c[1]))
		}
	}
	fmt.Fprint(&out, "Unit events/s better=higher\nUnit ns/op better=lower\nUnit p50-ns/op better=lower\nUnit p99-ns/op better=lower\n\n")
	w := benchfmt.NewWriter(&out)
	for _, p := range d.Points {
		name := benchstatName(d.Workload, p)
		for _, i := range p.Iterations {
			r := &benchfmt.Result{Name: benchfmt.Name(name), Iters: int(max(i.Events, 1)), Values: []benchfmt.Value{
				{Value: i.EventsPerSecond, Unit: "events/s"}, {Value: float64(i.MeanNanos), Unit: "ns/op"},
				{Value: float64(i.P50Nanos), Unit: "p50-ns/op"}, {Value: float64(i.P99Nanos), Unit: "p99-ns/op"},
			}}
			_ = w.Write(r) // to a buffer
		}
	}
	return out.Bytes()
}

// benchstatName is such as SlapWrite/target=mariadb/clients=10.
func benchstatName(workload string, p results.Point) string {
	name := ""
	for _, part := range strings.FieldsFunc(workload, func(r rune) bool { return !isWord(r) }) {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	if name == "" {
		name = "Workload"
	}
	name += "/target=" + p.Target
	for _, path := range slices.Sorted(maps.Keys(p.Parameters)) {
		name += "/" + lastName(path) + "=" + strings.Map(func(r rune) rune {
			if isWord(r) || r == '.' {
				return r
			}
			return '_'
		}, strings.Trim(string(p.Parameters[path].Raw), `"`))
	}
	return name
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
