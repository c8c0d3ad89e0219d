package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// The formats of results: table and wide for people, the others of package report.
const (
	formatTable     = "table"
	formatWide      = "wide"
	formatJSON      = "json"
	formatYAML      = "yaml"
	formatCSV       = "csv"
	formatBenchstat = "benchstat"
)

var resultFormats = []string{formatTable, formatWide, formatJSON, formatYAML, formatCSV, formatBenchstat}

func newResults(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "results NAME[@EXECUTION]",
		Short: "Print what a benchmark has found",
		Long: `Print what a benchmark has found, so far where it is under way: with two axes a matrix,
with one a table of throughput, else a line for each point. -o wide has a line for each
point in any case, with percentiles and warnings.

EXECUTION is the id of an earlier execution, or previous. json and yaml are the summary
that docs/results.md describes, with every iteration.`,
		Example: `  kubectl dbbench results nightly
  kubectl dbbench results nightly@previous -o wide
  kubectl dbbench results nightly -o csv`,
		Args:              exactly(1, "the name of a benchmark"),
		ValidArgsFunction: e.completeExecutions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := e.find(cmd.Context(), parseReference(args[0]))
			if err != nil {
				return err
			}
			return found.write(e.Out, output)
		},
	}
	addOutput(cmd, &output, resultFormats...)
	return cmd
}

// write writes a result in one of resultFormats.
func (r result) write(w io.Writer, format string) error {
	switch format {
	case formatTable, formatWide:
		return r.writeForPeople(w, format)
	}
	files, err := r.build()
	if err != nil {
		return err
	}
	text := map[string][]byte{formatJSON: files.JSON, formatYAML: files.JSON, formatCSV: files.CSV, formatBenchstat: files.Benchstat}[format]
	if format == formatYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err = w.Write(text)
	return err
}

func (r result) writeForPeople(w io.Writer, format string) error {
	b := r.benchmark
	fmt.Fprintf(w, "%s: %s\n\n", b.Name, r.reason)
	switch {
	case !slices.ContainsFunc(b.Status.Points, func(p v1alpha1.PointResult) bool { return p.Iterations > 0 }):
		_, err := fmt.Fprintln(w, "no results")
		return err
	case format == formatTable:
		return results.WriteMatrix(w, b)
	}
	return writeWide(w, b.Status.Points)
}

// writeWide writes a line for each point, its warnings below the table.
func writeWide(w io.Writer, points []v1alpha1.PointResult) error {
	t := printers.GetNewTabWriter(w)
	fmt.Fprintln(t, "TARGET\tPOINT\tRUNS\tFAILED\tERRORS\tAVG s\tEVENTS/s\tP50\tP95\tP99\tP99.9\tMAX\tVERDICT")
	for _, p := range points {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t", p.Target, results.ParametersText(p.Parameters), p.Iterations, p.Failed, p.Errors)
		average, rate := "-", "-"
		if p.ElapsedSeconds != nil {
			average = p.ElapsedSeconds.Average
		}
		if p.EventsPerSecond != nil {
			rate = p.EventsPerSecond.Median
		}
		fmt.Fprintf(t, "%s\t%s\t", average, rate)
		if l := p.LatencyMicros; l != nil {
			for _, micros := range []int64{l.P50, l.P95, l.P99, l.P999, l.Max} {
				fmt.Fprintf(t, "%s\t", results.Group(strconv.FormatInt(micros, 10))+"µs")
			}
		} else {
			fmt.Fprint(t, "-\t-\t-\t-\t-\t")
		}
		fmt.Fprintln(t, p.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range points {
		for _, warning := range p.Warnings {
			fmt.Fprintf(w, "%s %s: %s\n", p.Target, results.ParametersText(p.Parameters), warning)
		}
	}
	return nil
}
