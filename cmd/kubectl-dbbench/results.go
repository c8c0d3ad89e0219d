package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// formatTable is the format for people.
const formatTable = "table"

var resultFormats = []string{formatTable, "json", "yaml"}

func newResults(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "results NAME",
		Short: "Print what a benchmark has found",
		Long: `Print what the current execution of a benchmark has found so far: with two axes a matrix,
else a line for each point.`,
		Example: `  kubectl dbbench results nightly
  kubectl dbbench results nightly -o yaml`,
		Args:              exactly(1, "the name of a benchmark"),
		ValidArgsFunction: e.completeNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.connect()
			if err != nil {
				return err
			}
			b := &v1alpha1.DBBenchmark{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Namespace: c.namespace, Name: args[0]}, b); err != nil {
				return err
			}
			return writeResults(e.Out, b, output)
		},
	}
	addOutput(cmd, &output, resultFormats...)
	return cmd
}

// writeResults writes the points of a benchmark's execution.
func writeResults(w io.Writer, b *v1alpha1.DBBenchmark, format string) error {
	if format == formatTable {
		fmt.Fprintf(w, "%s: %s\n\n", b.Name, stateOf(b, "").reason)
		if !slices.ContainsFunc(b.Status.Points, func(p v1alpha1.PointResult) bool { return p.Iterations > 0 }) {
			_, err := fmt.Fprintln(w, "no results")
			return err
		}
		return results.WriteMatrix(w, b)
	}
	return writeStructured(w, format, b.Status.Points)
}
