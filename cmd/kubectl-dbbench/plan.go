package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload"
)

// overhead is what a run takes beside its load: a pod that starts, a look at the
// server, a table that is made and dropped.
const overhead = 5 * time.Second

type planOptions struct {
	files
	output     string
	throughput int64
}

func newPlan(e *env) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show the runs of benchmarks, without a cluster",
		Long: `Show what benchmarks would do, without a cluster: their runs in order, and an estimate
of the time that they take.

A run that a duration or a rate ends takes a known time. One that only a number of
events ends takes as long as the server needs: --throughput says what to assume.`,
		Example: `  kubectl dbbench plan -f bench.yaml
  kubectl dbbench plan -f bench.yaml --throughput 5000
  kubectl dbbench plan -f bench.yaml -o json | jq '.[].runs[].id'`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return o.run(e) },
	}
	o.addFlags(cmd.Flags())
	addOutput(cmd, &o.output, "table", "json", "yaml", "name")
	cmd.Flags().Int64Var(&o.throughput, "throughput", 1000, "The events per second to assume of runs that a number of events ends.")
	return cmd
}

func (o *planOptions) run(e *env) error {
	if o.throughput < 1 {
		return usageError("--throughput must be at least 1")
	}
	all, err := o.read(e)
	if err != nil {
		return err
	}
	var plans []planOf
	for _, p := range all {
		of, err := newPlanOf(p, o.throughput)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		plans = append(plans, of)
	}
	switch o.output {
	case "json", "yaml":
		return writeStructured(e.Out, o.output, plans)
	case "name":
		for _, p := range plans {
			for _, r := range p.Runs {
				fmt.Fprintln(e.Out, r.ID)
			}
		}
		return nil
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(e.Out)
		}
		if err := p.write(e.Out); err != nil {
			return err
		}
	}
	return nil
}

// planOf is what a benchmark would do.
type planOf struct {
	Name     string    `json:"name"`
	Workload string    `json:"workload"`
	Runs     []planRun `json:"runs"`
	// EstimatedSeconds is the sum over the runs, and of what goes before and after each.
	// It is 0 where a run is among them whose end is not known.
	EstimatedSeconds int64 `json:"estimatedSeconds,omitempty"`
	// LimitSeconds is the sum of the runs' timeouts.
	LimitSeconds int64 `json:"limitSeconds"`

	benchmark  *v1alpha1.DBBenchmark
	throughput int64
	assumed    bool // the estimate is made with throughput
}

type planRun struct {
	ID         string              `json:"id"`
	Target     string              `json:"target"`
	Parameters v1alpha1.Parameters `json:"parameters,omitempty"`
	Iteration  int32               `json:"iteration"`
	// Events is the greatest number of events, 0 where only time or the workload ends it.
	Events int64 `json:"events,omitempty"`
	// Seconds is the estimated time of the load, 0 where it is not known.
	Seconds float64 `json:"seconds,omitempty"`
}

func newPlanOf(p planned, throughput int64) (planOf, error) {
	b := p.benchmark
	of := planOf{
		Name: b.Name, Workload: plan.WorkloadName(b.Spec.Workload), benchmark: b, throughput: throughput,
		LimitSeconds: int64(len(p.runs)) * int64(plan.RunTimeout(&b.Spec)/time.Second),
	}
	total, known := time.Duration(0), true
	for _, r := range p.runs {
		load, err := effectiveLoad(b, r)
		if err != nil {
			return of, fmt.Errorf("run %s: %w", r.ID, err)
		}
		takes, assumed := estimate(load, throughput)
		of.assumed = of.assumed || assumed
		known = known && takes > 0
		total += takes + overhead
		of.Runs = append(of.Runs, planRun{
			ID: r.ID, Target: r.Target, Parameters: r.Parameters, Iteration: r.Iteration, Events: eventsOf(load), Seconds: takes.Seconds(),
		})
	}
	if known {
		of.EstimatedSeconds = int64(total.Seconds())
	}
	return of, nil
}

// effectiveLoad is the load of a run with the conventions of its workload, such as that
// of sysbench to run for 10 s.
func effectiveLoad(b *v1alpha1.DBBenchmark, r plan.Run) (contract.Load, error) {
	spec, err := resources.RunSpec(b, "plan", r)
	if err != nil {
		return contract.Load{}, err
	}
	w, err := workload.New(spec.Workload)
	if err != nil {
		return contract.Load{}, err
	}
	return w.Load(spec.Load), nil
}

// eventsOf is the greatest number of events that a load allows, 0 for no such limit.
func eventsOf(l contract.Load) int64 {
	perClient := l.EventsPerClient * int64(l.Clients)
	if l.Events == 0 || perClient > 0 && perClient < l.Events {
		return perClient
	}
	return l.Events
}

// estimate is the time that a load takes, 0 where nothing tells; assumed says that it
// was made with a throughput that is not the load's own.
func estimate(l contract.Load, throughput int64) (takes time.Duration, assumed bool) {
	if events := eventsOf(l); events > 0 {
		rate := l.Rate
		if rate == 0 {
			rate, assumed = throughput, true
		}
		takes = time.Duration(float64(events) / float64(rate) * float64(time.Second))
	}
	if limit := time.Duration(l.Duration); limit > 0 && (takes == 0 || limit <= takes) {
		takes, assumed = limit, false
	}
	if takes == 0 {
		return 0, false
	}
	return takes + time.Duration(l.Warmup), assumed
}

func (p planOf) write(w io.Writer) error {
	spec := p.benchmark.Spec
	points := len(p.Runs) / len(spec.Targets) / int(spec.Iterations)
	fmt.Fprintf(w, "%s: %s, %s × %s × %s = %s\n", p.Name, p.Workload,
		count(points, "point"), count(len(spec.Targets), "target"), count(int(spec.Iterations), "iteration"), count(len(p.Runs), "run"))
	if p.EstimatedSeconds > 0 {
		fmt.Fprintf(w, "Estimated time: %s, with %s for each run to start and end, without loading.\n",
			human(time.Duration(p.EstimatedSeconds)*time.Second), overhead)
	} else {
		fmt.Fprintln(w, "Estimated time: not known, as the workload itself ends its runs.")
	}
	if p.assumed {
		fmt.Fprintf(w, "It assumes %s events/s where a number of events ends a run (--throughput).\n", results.Group(strconv.FormatInt(p.throughput, 10)))
	}
	fmt.Fprintf(w, "At most %s, by runTimeout.\n\n", human(time.Duration(p.LimitSeconds)*time.Second))
	return p.writeRuns(w)
}

func (p planOf) writeRuns(w io.Writer) error {
	t := printers.GetNewTabWriter(w)
	var paths, headers []string
	if sweep := p.benchmark.Spec.Sweep; sweep != nil {
		for _, a := range sweep.Axes {
			paths = append(paths, a.Path)
			headers = append(headers, strings.ToUpper(a.Path[strings.LastIndexByte(a.Path, '.')+1:])+"\t")
		}
	}
	fmt.Fprintf(t, "RUN\tTARGET\t%sEVENTS\tTIME\n", strings.Join(headers, ""))
	for _, r := range p.Runs {
		fmt.Fprintf(t, "%s\t%s\t", r.ID, r.Target)
		for _, path := range paths {
			fmt.Fprintf(t, "%s\t", results.Group(string(r.Parameters[path].Raw)))
		}
		events, takes := "-", "-"
		if r.Events > 0 {
			events = results.Group(strconv.FormatInt(r.Events, 10))
		}
		if r.Seconds > 0 {
			takes = human(time.Duration(r.Seconds * float64(time.Second)))
		}
		fmt.Fprintf(t, "%s\t%s\n", events, takes)
	}
	return t.Flush()
}

// human is a duration as kubectl writes ages, but for those below a second.
func human(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// writeStructured writes a value as JSON or YAML.
func writeStructured(w io.Writer, format string, v any) error {
	var text []byte
	var err error
	if format == "yaml" {
		text, err = yaml.Marshal(v)
	} else {
		text, err = json.MarshalIndent(v, "", "    ")
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
