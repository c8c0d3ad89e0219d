package results

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"dbbench.dev/operator/api/v1alpha1"
)

// WriteMatrix writes the points of a status as the table that mysqlslap's users draw:
// a row for each value of the first axis, a column for each of the second, and in the
// cells the average elapsed seconds; then the same per 1,000 events of a client. With
// another number of axes it writes a line for each point.
func WriteMatrix(w io.Writer, b *v1alpha1.DBBenchmark) error {
	if len(b.Status.Points) == 0 {
		_, err := fmt.Fprintln(w, "no results yet")
		return err
	}
	rows, columns, ok := matrixAxes(b)
	if !ok {
		return writeList(w, b.Status.Points)
	}
	for _, t := range b.Spec.Targets {
		if err := writeMatrices(w, b.Status.Points, t.Name, rows, columns); err != nil {
			return err
		}
	}
	if b.Status.PointsTruncated > 0 {
		_, err := fmt.Fprintf(w, "%d more points are in the ConfigMaps %s\n", b.Status.PointsTruncated, strings.Join(b.Status.ResultsConfigMaps, ", "))
		return err
	}
	return nil
}

// eventsPath is the axis that the second table divides by.
const eventsPath = "load.eventsPerClient"

func matrixAxes(b *v1alpha1.DBBenchmark) (rows, columns v1alpha1.Axis, ok bool) {
	if b.Spec.Sweep == nil || len(b.Spec.Sweep.Axes) != 2 {
		return rows, columns, false
	}
	return b.Spec.Sweep.Axes[0], b.Spec.Sweep.Axes[1], true
}

func writeMatrices(w io.Writer, points []v1alpha1.PointResult, target string, rows, columns v1alpha1.Axis) error {
	fmt.Fprintf(w, "%s: average number of seconds to run all queries\n", target)
	err := writeTable(w, points, target, rows, columns, func(p v1alpha1.PointResult) string { return p.ElapsedSeconds.Average })
	if err != nil || columns.Path != eventsPath {
		return err
	}
	fmt.Fprintf(w, "\n%s: the same per 1,000 queries of a client\n", target)
	return writeTable(w, points, target, rows, columns, perThousand)
}

func perThousand(p v1alpha1.PointResult) string {
	events, err := strconv.ParseFloat(string(p.Parameters[eventsPath].Raw), 64)
	seconds, err2 := strconv.ParseFloat(p.ElapsedSeconds.Average, 64)
	if err != nil || err2 != nil || events == 0 {
		return "-"
	}
	return decimal(seconds/events*1000, 4)
}

// writeTable writes a table that is a table in Markdown too.
func writeTable(w io.Writer, points []v1alpha1.PointResult, target string, rows, columns v1alpha1.Axis, cell func(v1alpha1.PointResult) string) error {
	table := [][]string{{lastName(rows.Path) + " / " + lastName(columns.Path)}}
	for _, c := range columns.Values {
		table[0] = append(table[0], Group(string(c.Raw)))
	}
	for _, r := range rows.Values {
		line := []string{Group(string(r.Raw))}
		for _, c := range columns.Values {
			text := "-"
			for _, p := range points {
				if p.Target == target && p.ElapsedSeconds != nil &&
					string(p.Parameters[rows.Path].Raw) == string(r.Raw) && string(p.Parameters[columns.Path].Raw) == string(c.Raw) {
					text = cell(p)
				}
			}
			line = append(line, text)
		}
		table = append(table, line)
	}
	return alignTable(w, table)
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
