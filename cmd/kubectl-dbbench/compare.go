package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

func newCompare(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two results",
		Long: `Compare the points of two results that have the same parameters: ratio of B to A, its
confidence interval, and the p-value of the Mann-Whitney U test.

A result is a benchmark (its current execution), NAME@EXECUTION, NAME@previous, or a
file: what kubectl dbbench export --format json has written, or a ConfigMap with results
or a report as YAML or JSON.`,
		Example: `  kubectl dbbench compare nightly@previous nightly
  kubectl dbbench compare baseline.json nightly
  kubectl dbbench compare before.json after.json -o json`,
		Args:              exactly(2, "two results, A and B"),
		ValidArgsFunction: e.completeExecutions(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var both [2][]results.Point
			for i, name := range args {
				var err error
				if both[i], err = e.points(cmd.Context(), name); err != nil {
					return err
				}
			}
			all, missing := compare(both[0], both[1], args[0])
			if len(all) == 0 {
				return errors.New("the two have no point in common: target and parameters must be the same")
			}
			if output != formatTable {
				return writeStructured(e.Out, output, all)
			}
			return writeComparisons(e.Out, args[0], args[1], all, missing)
		},
	}
	addOutput(cmd, &output, formatTable, "json", "yaml")
	return cmd
}

// points are those of a file or of an execution in the cluster.
func (e *env) points(ctx context.Context, name string) ([]results.Point, error) {
	text, err := os.ReadFile(name)
	switch {
	case err == nil:
		return readPoints(name, text)
	case !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, "/\\") || strings.HasSuffix(name, ".json"):
		return nil, err
	}
	found, err := e.find(ctx, parseReference(name))
	if err != nil {
		return nil, err
	}
	in, err := found.input()
	if err != nil {
		return nil, err
	}
	return results.Points(in.Runs, targetNames(in.Spec), spreadOf(in.Spec)), nil
}

// readPoints reads a summary, or a ConfigMap that holds one or a benchmark's results.
func readPoints(name string, text []byte) ([]results.Point, error) {
	var cm corev1.ConfigMap
	if err := yaml.Unmarshal(text, &cm); err != nil {
		return nil, fmt.Errorf("%s is neither a summary nor a ConfigMap: %w", name, err)
	}
	data := cm.Data
	if cm.Kind == "" {
		data = map[string]string{results.SummaryKey: string(text)}
	}
	b, err := results.ReadBaseline(name, data)
	if err != nil {
		return nil, err
	}
	return b.Points(), nil
}

func targetNames(spec v1alpha1.DBBenchmarkSpec) []string {
	var names []string
	for _, t := range spec.Targets {
		names = append(names, t.Name)
	}
	return names
}

// compare holds the points of b against those of a. Where each has one target alone, it
// may have another name. missing counts the points of b that a does not have.
func compare(a, b []results.Point, against string) (all []results.Comparison, missing int) {
	key := results.Point.Key
	if oneTarget(a) && oneTarget(b) {
		key = results.Point.ParametersKey
	}
	byKey := map[string]results.Point{}
	for _, p := range a {
		byKey[key(p)] = p
	}
	for _, p := range b {
		base, ok := byKey[key(p)]
		if !ok {
			missing++
			continue
		}
		all = append(all, results.Compare(base, p, against)...)
	}
	return all, missing
}

func oneTarget(points []results.Point) bool {
	return !slices.ContainsFunc(points, func(p results.Point) bool { return p.Target != points[0].Target })
}

// signs stand for verdicts in a table; the legend below it has the words.
var signs = map[string]string{results.NoDifference: "~", results.TooFew: "?"}

// writeComparisons writes a table for each metric.
func writeComparisons(w io.Writer, a, b string, all []results.Comparison, missing int) error {
	fmt.Fprintf(w, "A is %s, B is %s; RATIO is B to A.\n", a, b)
	var metrics []v1alpha1.Metric
	for _, c := range all {
		if !slices.Contains(metrics, c.Metric) {
			metrics = append(metrics, c.Metric)
		}
	}
	label := labels(all)
	legend := map[string]string{}
	for _, m := range metrics {
		fmt.Fprintf(w, "\n%s\n", m)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "POINT\tA\tB\tRATIO\tINTERVAL\tP\t")
		for _, c := range all {
			if c.Metric != m {
				continue
			}
			interval, verdict := "-", c.Verdict
			if c.Interval != nil {
				interval = fmt.Sprintf("%.2f-%.2f", c.Interval.Low, c.Interval.High)
			}
			if sign, ok := signs[verdict]; ok {
				verdict, legend[sign] = sign, c.Verdict
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%.3f\t%s\t%.3f\t%s\n", label(c),
				metricText(m, c.Base), metricText(m, c.Value), c.Ratio, interval, c.P, verdict)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return writeNotes(w, legend, all, missing)
}

// labels are how the points of comparisons are named: without the target where there is
// one alone.
func labels(all []results.Comparison) func(results.Comparison) string {
	several := slices.ContainsFunc(all, func(c results.Comparison) bool { return c.Target != all[0].Target })
	return func(c results.Comparison) string {
		parameters := results.ParametersText(c.Parameters)
		if several || parameters == "" {
			return strings.TrimSpace(c.Target + " " + parameters)
		}
		return parameters
	}
}

func writeNotes(w io.Writer, legend map[string]string, all []results.Comparison, missing int) error {
	fmt.Fprintln(w)
	for _, sign := range []string{"~", "?"} {
		if words, ok := legend[sign]; ok {
			fmt.Fprintf(w, "%s %s\n", sign, words)
		}
	}
	if least := slices.MinFunc(all, func(a, b results.Comparison) int { return int(1e6 * (a.Confidence - b.Confidence)) }); least.Interval != nil {
		fmt.Fprintf(w, "The intervals hold with at least %.0f %% confidence, from %d and %d iterations.\n", 100*least.Confidence, least.N1, least.N2)
	}
	if missing > 0 {
		fmt.Fprintf(w, "%s of B %s not in A.\n", count(missing, "point"), map[bool]string{true: "is", false: "are"}[missing == 1])
	}
	return nil
}

// metricText is a metric of a comparison, in events per second or nanoseconds.
func metricText(m v1alpha1.Metric, v float64) string {
	if m == results.MetricThroughput {
		return results.Group(fmt.Sprintf("%.0f", v)) + "/s"
	}
	return strings.ReplaceAll(results.FormatSeconds(v/1e9), " ", "")
}
