package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// maxRows bounds the tables of the page; the files beside it have all.
const maxRows = 200

// view is what the page's template shows.
type view struct {
	results.Document
	Style     template.CSS
	Status    string // Passed, Failed, Complete or No verdict
	Facts     []fact
	Warnings  []string
	Tables    []results.Table
	Axes      []chart
	AxesLeft  int
	Details   []detailView
	DetailsOf int // of so many points
	Compared  []comparisonRow
	Rows      []pointRow
	RowsLeft  int
	Servers   []serverRow
	Targets   []string
	Settings  []settingRow
}

type fact struct{ Name, Value string }

type detailView struct {
	Name   string
	Charts []chart
	Open   bool
}

type comparisonRow struct {
	Point, Target, Against, Metric, Base, Value, Ratio, Interval, P, Verdict, Class, Note string
}

type pointRow struct {
	Target, Parameters, Throughput, Range, P50, P95, P99, Max, Elapsed, Errors, Iterations, Verdict string
	Warnings                                                                                        []string
}

type serverRow struct {
	Target, Server, Hash, Runner string
	Counters                     []fact
}

// settingRow is a variable that differs, by target.
type settingRow struct {
	Name   string
	Values []string
}

func page(in Input, d results.Document, maxDetails int) ([]byte, error) {
	targets := targetNames(in.Spec)
	v := view{
		Document: d, Style: template.CSS(pageStyle), Status: statusOf(d), Facts: facts(in, d), Warnings: pageWarnings(d), //nolint:gosec // a file of this package
		Tables: results.Tables(in.Spec, statusPoints(d.Points)), Targets: targets, Servers: servers(d.Environments), Settings: settings(d.Differences, targets),
	}
	graphs, left := axisGraphs(in, d.Points)
	v.AxesLeft = left
	for _, g := range graphs {
		if c, ok := draw(chartID("axis", len(v.Axes)+1), g); ok {
			v.Axes = append(v.Axes, c)
		}
	}
	v.Details, v.DetailsOf = detailViews(in, d.Points, targets, maxDetails)
	for _, c := range d.Comparisons[:min(len(d.Comparisons), maxRows)] {
		v.Compared = append(v.Compared, newComparisonRow(c))
	}
	for _, p := range d.Points[:min(len(d.Points), maxRows)] {
		v.Rows = append(v.Rows, newPointRow(p))
	}
	v.RowsLeft = len(d.Points) - len(v.Rows) + d.PointsLeftOut
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("%s: %w", results.HTMLKey, err)
	}
	return out.Bytes(), nil
}

func statusPoints(points []results.Point) (all []v1alpha1.PointResult) {
	for _, p := range points {
		all = append(all, p.Status())
	}
	return all
}

func detailViews(in Input, points []results.Point, targets []string, limit int) (all []detailView, of int) {
	runs := map[string][]results.Envelope{}
	for _, r := range in.Runs {
		if r.Failure == nil && r.Lost == 0 {
			key := r.Point + " " + r.Target
			runs[key] = append(runs[key], r)
		}
	}
	list := details(points)
	for i, d := range list[:min(len(list), limit)] {
		dv := detailView{Name: d.name, Open: i == len(list)-1 || i == limit-1}
		if dv.Name == "" {
			dv.Name = "the only point"
		}
		for _, g := range d.graphs(targets, runs) {
			if c, ok := draw(chartID(fmt.Sprintf("point-%d", i+1), len(dv.Charts)+1), g); ok {
				dv.Charts = append(dv.Charts, c)
			}
		}
		all = append(all, dv)
	}
	return all, len(list)
}

func statusOf(d results.Document) string {
	t := d.Thresholds
	switch {
	case t != nil && len(t.NotMet) > 0:
		return "Thresholds not met"
	case d.Failure != "":
		return "Failed"
	case t == nil:
		return "Complete"
	case len(t.NotJudged) > 0:
		return "No verdict"
	}
	return "Passed"
}

func facts(in Input, d results.Document) (all []fact) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	add("Workload", d.Workload)
	add("Points", strconv.Itoa(len(d.Points)+d.PointsLeftOut))
	if in.Spec.Iterations > 0 {
		add("Iterations", strconv.Itoa(int(in.Spec.Iterations)))
	}
	add("Started", moment(in.Started))
	if !in.Started.IsZero() && in.Completed.After(in.Started) {
		add("Took", in.Completed.Sub(in.Started).Round(time.Second).String())
	}
	add("Baseline", d.Baseline)
	add("Namespace", d.Namespace)
	add("Execution", d.Execution)
	return all
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

var figure = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// pageWarnings are those of the execution, and those of the points: of those that differ
// in their figures alone the first, with how many points have it.
func pageWarnings(d results.Document) []string {
	all := slices.Clone(d.Warnings)
	count := map[string]int{}
	first := map[string]string{}
	var order []string
	for _, p := range d.Points {
		for _, w := range p.Warnings {
			kind := figure.ReplaceAllString(w, "")
			if count[kind]++; count[kind] == 1 {
				order = append(order, kind)
				first[kind] = p.Label() + ": " + w
			}
		}
	}
	const enough = 20
	for _, kind := range order[:min(len(order), enough)] {
		text := first[kind]
		if n := count[kind]; n > 1 {
			text += fmt.Sprintf(" (%d more points have the like)", n-1)
		}
		all = append(all, text)
	}
	if rest := len(order) - enough; rest > 0 {
		all = append(all, fmt.Sprintf("and %d more warnings, beside their points in the table below", rest))
	}
	return all
}

func newComparisonRow(c results.Comparison) comparisonRow {
	r := comparisonRow{
		Point: results.ParametersText(c.Parameters), Target: c.Target, Against: c.Against, Metric: string(c.Metric),
		Base: metricText(c, c.Base), Value: metricText(c, c.Value), Ratio: "–", Interval: "–", P: fixed(c.P, 3), Verdict: c.Verdict, Class: "none",
	}
	if c.Ratio > 0 {
		r.Ratio = fixed(c.Ratio, 3)
	}
	if i := c.Interval; i != nil {
		r.Interval = fmt.Sprintf("%.3f to %.3f (%.0f %%)", i.Low, i.High, 100*c.Confidence)
	}
	switch c.Verdict {
	case results.Faster:
		r.Class = "good"
	case results.Slower:
		r.Class = "bad"
	}
	for i, w := range c.Warnings {
		if i > 0 {
			r.Note += "; "
		}
		r.Note += w
	}
	return r
}

func metricText(c results.Comparison, v float64) string {
	if c.Metric == results.MetricThroughput {
		return decimalGroups(v)
	}
	return results.FormatSeconds(v / 1e9)
}

// decimalGroups is a number with commas between the thousands.
func decimalGroups(v float64) string {
	if v >= 1000 {
		return results.Group(fixed(v, 0))
	}
	return fixed(v, 1)
}

func newPointRow(p results.Point) pointRow {
	r := pointRow{
		Target: p.Target, Parameters: results.ParametersText(p.Parameters), Errors: results.Group(integer(p.Errors)),
		Iterations: strconv.Itoa(len(p.Iterations)), Verdict: p.Verdict, Warnings: p.Warnings,
	}
	if p.Failed > 0 {
		r.Iterations += fmt.Sprintf(" (+%d failed)", p.Failed)
	}
	if t := p.EventsPerSecond; t != nil {
		r.Throughput, r.Range = decimalGroups(t.Median), decimalGroups(t.Minimum)+" to "+decimalGroups(t.Maximum)
	}
	if e := p.ElapsedSeconds; e != nil {
		r.Elapsed = fixed(e.Average, 3)
	}
	if l := p.LatencyNanos; l != nil {
		r.P50, r.P95, r.P99, r.Max = seconds(nanos(l.P50)), seconds(nanos(l.P95)), seconds(nanos(l.P99)), seconds(nanos(l.Max))
	}
	return r
}

func servers(environments []results.TargetEnvironment) (all []serverRow) {
	for _, e := range environments {
		r := serverRow{Target: e.Target, Server: e.ServerFlavor + " " + e.ServerVersion, Hash: e.VariablesSHA256}
		if len(e.Runners) > 0 {
			r.Runner = runnerText(e.Runners)
		}
		if e.Kubernetes != "" {
			r.Runner += ", Kubernetes " + e.Kubernetes
		}
		for _, name := range slices.Sorted(maps.Keys(e.StatusDeltas)) {
			r.Counters = append(r.Counters, fact{name, results.Group(integer(e.StatusDeltas[name]))})
		}
		all = append(all, r)
	}
	return all
}

func runnerText(runners []contract.RunnerUsage) string {
	u := runners[0]
	text := fmt.Sprintf("%d × %s", max(u.Cores, u.GOMAXPROCS), u.CPUModel)
	if u.CPULimitMilli > 0 {
		text += fmt.Sprintf(", limited to %g", float64(u.CPULimitMilli)/1000)
	}
	if u.Node != "" {
		text += ", node " + u.Node
	}
	if n := len(runners); n > 1 {
		text = fmt.Sprintf("%d pods, the first on %s", n, text)
	}
	return text
}

func settings(differences []results.VariableDifference, targets []string) (all []settingRow) {
	for _, d := range differences {
		r := settingRow{Name: d.Name}
		for _, t := range targets {
			value, has := d.Values[t]
			if !has {
				value = "–"
			}
			r.Values = append(r.Values, value)
		}
		all = append(all, r)
	}
	return all
}
