package results

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"dbbench.dev/operator/api/v1alpha1"
)

// Table is a table for people: its first row is the head, its first column names the rows.
type Table struct {
	Title string
	Rows  [][]string
}

// WriteMatrix writes the points of a status as the tables of Tables where they compare
// something: two axes, or several targets. Else it writes a line for each point.
func WriteMatrix(w io.Writer, b *v1alpha1.DBBenchmark) error {
	if len(b.Status.Points) == 0 {
		_, err := fmt.Fprintln(w, "no results yet")
		return err
	}
	if err := writePoints(w, b); err != nil || b.Status.PointsTruncated == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "%d more points are in the ConfigMaps %s\n", b.Status.PointsTruncated, strings.Join(b.Status.ResultsConfigMaps, ", "))
	return err
}

func writePoints(w io.Writer, b *v1alpha1.DBBenchmark) error {
	tables := Tables(b.Spec, b.Status.Points)
	if len(tables) == 0 || len(b.Spec.Sweep.Axes) == 1 && len(b.Spec.Targets) == 1 {
		return writeList(w, b.Status.Points)
	}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, t.Title)
		if err := alignTable(w, t.Rows); err != nil {
			return err
		}
	}
	return nil
}

// Tables are points in the forms that are customary: of two axes, as mysqlslap's users
// draw them, for each target a row for each value of the first axis, a column for each
// of the second and in the cells the average elapsed seconds, then the same per 1,000
// events of a client, but the throughput where the load ends by time; of one axis a column for each value and a row for each target,
// in the cells the throughput. With another number of axes there are none.
func Tables(spec v1alpha1.DBBenchmarkSpec, points []v1alpha1.PointResult) []Table {
	if spec.Sweep == nil {
		return nil
	}
	switch axes := spec.Sweep.Axes; len(axes) {
	case 1:
		return targetTables(spec.Targets, axes[0], points)
	case 2:
		var all []Table
		for _, t := range spec.Targets {
			all = append(all, matrices(spec.Load, t.Name, axes[0], axes[1], points)...)
		}
		return all
	}
	return nil
}

// eventsPath is the axis that the second table divides by.
const eventsPath = "load.eventsPerClient"

func matrices(load v1alpha1.Load, target string, rows, columns v1alpha1.Axis, points []v1alpha1.PointResult) []Table {
	cells := map[[2]string]v1alpha1.PointResult{}
	for _, p := range points {
		if p.Target == target && p.ElapsedSeconds != nil {
			cells[[2]string{string(p.Parameters[rows.Path].Raw), string(p.Parameters[columns.Path].Raw)}] = p
		}
	}
	if load.Duration != nil {
		return []Table{{target + ": events per second, median of the iterations",
			matrix(rows, columns, cells, func(p v1alpha1.PointResult) string { return events(p.EventsPerSecond.Median) })}}
	}
	all := []Table{{target + ": average number of seconds to run all queries",
		matrix(rows, columns, cells, func(p v1alpha1.PointResult) string { return p.ElapsedSeconds.Average })}}
	if columns.Path == eventsPath {
		all = append(all, Table{target + ": the same per 1,000 queries of a client", matrix(rows, columns, cells, perThousand)})
	}
	return all
}

func perThousand(p v1alpha1.PointResult) string {
	events, err := strconv.ParseFloat(string(p.Parameters[eventsPath].Raw), 64)
	seconds, err2 := strconv.ParseFloat(p.ElapsedSeconds.Average, 64)
	if err != nil || err2 != nil || events == 0 {
		return "-"
	}
	return decimal(seconds/events*1000, 4)
}

// matrix is a table that is a table in Markdown too.
func matrix(rows, columns v1alpha1.Axis, cells map[[2]string]v1alpha1.PointResult, text func(v1alpha1.PointResult) string) [][]string {
	table := [][]string{append([]string{lastName(rows.Path) + " / " + lastName(columns.Path)}, axisHead(columns)...)}
	for _, r := range rows.Values {
		row := []string{Group(string(r.Raw))}
		for _, c := range columns.Values {
			value := "-"
			if p, ok := cells[[2]string{string(r.Raw), string(c.Raw)}]; ok {
				value = text(p)
			}
			row = append(row, value)
		}
		table = append(table, row)
	}
	return table
}

func axisHead(a v1alpha1.Axis) (head []string) {
	for _, v := range a.Values {
		head = append(head, Group(string(v.Raw)))
	}
	return head
}

func targetTables(targets []v1alpha1.Target, axis v1alpha1.Axis, points []v1alpha1.PointResult) []Table {
	median := map[[2]string]string{}
	for _, p := range points {
		if p.EventsPerSecond != nil {
			median[[2]string{p.Target, string(p.Parameters[axis.Path].Raw)}] = p.EventsPerSecond.Median
		}
	}
	head := append([]string{lastName(axis.Path)}, axisHead(axis)...)
	throughput := Table{"Events per second, median of the iterations", [][]string{head}}
	ratios := Table{"Ratio to " + targets[0].Name, [][]string{head}}
	for i, t := range targets {
		row, ratio := []string{t.Name}, []string{t.Name}
		for _, v := range axis.Values {
			value := median[[2]string{t.Name, string(v.Raw)}]
			row = append(row, events(value))
			ratio = append(ratio, quotient(value, median[[2]string{targets[0].Name, string(v.Raw)}]))
		}
		throughput.Rows = append(throughput.Rows, row)
		if i > 0 {
			ratios.Rows = append(ratios.Rows, ratio)
		}
	}
	if len(targets) == 1 {
		return []Table{throughput}
	}
	return []Table{throughput, ratios}
}

// events shortens a throughput to what is significant.
func events(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return "-"
	case v >= 1000:
		return Group(decimal(v, 0))
	}
	return decimal(v, 1)
}

func quotient(a, b string) string {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil || y == 0 {
		return "-"
	}
	return decimal(x/y, 3)
}

func alignTable(w io.Writer, table [][]string) error {
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, text := range line {
			widths[i] = max(widths[i], len(text))
		}
	}
	for n, line := range table {
		for i, text := range line {
			fmt.Fprintf(w, "| %*s ", widths[i], text)
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(w, "|%s:", strings.Repeat("-", width+1))
			}
			fmt.Fprintln(w, "|")
		}
	}
	return nil
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// Group puts commas between the thousands of a whole number; other texts stay.
func Group(text string) string {
	if _, err := strconv.ParseUint(text, 10, 63); err != nil {
		return strings.Trim(text, `"`)
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func writeList(w io.Writer, points []v1alpha1.PointResult) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "target\tparameters\tavg s\tmin s\tmax s\tevents/s\tp99 µs\terrors\t")
	for _, p := range points {
		if p.ElapsedSeconds == nil {
			fmt.Fprintf(t, "%s\t%s\tfailed\t\t\t\t\t\t\n", p.Target, ParametersText(p.Parameters))
			continue
		}
		p99 := "-"
		if p.LatencyMicros != nil {
			p99 = strconv.FormatInt(p.LatencyMicros.P99, 10)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", p.Target, ParametersText(p.Parameters),
			p.ElapsedSeconds.Average, p.ElapsedSeconds.Minimum, p.ElapsedSeconds.Maximum, p.EventsPerSecond.Median, p99, p.Errors)
	}
	return t.Flush()
}
