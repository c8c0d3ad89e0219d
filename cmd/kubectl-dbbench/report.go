package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"dbbench.dev/operator/results/report"
)

func newReport(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report NAME[@EXECUTION] -o FILE",
		Short: "Write a result as a page for the browser",
		Long: `Write a result as one HTML page that needs nothing else: tables, charts, latency
distributions, the environment, and what to distrust.`,
		Example: `  kubectl dbbench report nightly -o nightly.html
  kubectl dbbench report nightly@previous -o - > before.html`,
		Args:              exactly(1, "the name of a benchmark"),
		ValidArgsFunction: e.completeExecutions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := e.build(cmd, args[0])
			if err != nil {
				return err
			}
			if output == "" {
				output = parseReference(args[0]).name + ".html"
			}
			return e.writeFile(output, files.HTML)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "The file to write, - for standard output. Default: NAME.html.")
	return cmd
}

func newExport(e *env) *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "export NAME[@EXECUTION]",
		Short: "Write a result for other programs",
		Long: `Write a result for other programs: as JSON (docs/results.md describes it, compare reads
it), as CSV with a line for each point, or as the text that benchstat reads.`,
		Example: `  kubectl dbbench export nightly > nightly.json
  kubectl dbbench export nightly --format csv -o nightly.csv
  benchstat <(kubectl dbbench export nightly@previous --format benchstat) <(kubectl dbbench export nightly --format benchstat)`,
		Args:              exactly(1, "the name of a benchmark"),
		ValidArgsFunction: e.completeExecutions(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := e.build(cmd, args[0])
			if err != nil {
				return err
			}
			return e.writeFile(output, map[string][]byte{formatJSON: files.JSON, formatCSV: files.CSV, formatBenchstat: files.Benchstat}[format])
		},
	}
	addChoice(cmd, &format, "format", "", "The format.", formatJSON, formatCSV, formatBenchstat)
	cmd.Flags().StringVarP(&output, "output", "o", "-", "The file to write, - for standard output.")
	return cmd
}

// build makes the files of an execution's report.
func (e *env) build(cmd *cobra.Command, name string) (report.Files, error) {
	found, err := e.find(cmd.Context(), parseReference(name))
	if err != nil {
		return report.Files{}, err
	}
	return found.build()
}

func (r result) build() (report.Files, error) {
	in, err := r.input()
	if err != nil {
		return report.Files{}, err
	}
	return report.Build(in)
}

func (e *env) writeFile(path string, text []byte) error {
	if path == "-" {
		_, err := e.Out.Write(text)
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(e.ErrOut, "%s written\n", path)
	return nil
}
