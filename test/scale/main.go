// Command scale finds out what many benchmarks cost. A real manager, as a process of
// its own, works against a real kube-apiserver and etcd; in place of nodes and of the
// Job controller stand a few lines that make a pod for each Job, end it at once and
// serve its log.
//
//	KUBEBUILDER_ASSETS=… go run ./test/scale --benchmarks 100,1000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	benchmarks []int
	runs       int
	servers    int
	namespaces int
	idle       time.Duration
	limit      time.Duration
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(stderr)
	sizes := flags.String("benchmarks", "100,1000", "numbers of benchmarks, one simulation each")
	flags.IntVar(&o.runs, "runs", 10, "runs of each benchmark")
	flags.IntVar(&o.servers, "servers", 200, "database servers that they share")
	flags.IntVar(&o.namespaces, "namespaces", 20, "namespaces that they are in")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long the manager is watched when all is done")
	flags.DurationVar(&o.limit, "limit", time.Hour, "the longest that one simulation may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("--benchmarks: %q is not a number of benchmarks", text)
		}
		o.benchmarks = append(o.benchmarks, n)
	}
	if o.runs < 1 || o.runs > 100 || o.servers < 1 || o.namespaces < 1 || o.idle <= 0 {
		return o, errors.New("--runs must be 1 to 100; --servers, --namespaces and --idle positive")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS must name the folder of kube-apiserver and etcd: use make scale")
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	manager := filepath.Join(dir, "manager")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", manager, "./cmd/manager").CombinedOutput(); err != nil {
		return fmt.Errorf("build the manager: %w: %s", err, out)
	}
	var all []result
	for _, n := range o.benchmarks {
		r, err := simulate(ctx, o, n, dir, stderr)
		if err != nil {
			// What the smaller ones took a while to show is not lost.
			return errors.Join(fmt.Errorf("%d benchmarks: %w", n, err), print(stdout, o, all))
		}
		all = append(all, r)
	}
	return print(stdout, o, all)
}

// simulate runs one number of benchmarks, on a control plane of its own.
func simulate(ctx context.Context, o options, n int, dir string, stderr io.Writer) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	c, err := startCluster(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.startNode(ctx); err != nil {
		return r, err
	}
	if err := c.createBenchmarks(ctx, o, n); err != nil {
		return r, err
	}
	m, err := c.startManager(ctx, filepath.Join(dir, "manager"), stderr)
	if err != nil {
		return r, err
	}
	defer m.stop()
	began := time.Now()
	if err := c.await(ctx, n, stderr); err != nil {
		return r, err
	}
	r = result{benchmarks: n, runs: n * o.runs, took: time.Since(began)}
	busy, err := m.measure(ctx)
	if err != nil {
		return r, err
	}
	if r.events, err = c.events(ctx); err != nil {
		return r, err
	}
	r.busy = busy
	if r.peak, err = m.peakMemory(); err != nil {
		return r, err
	}
	// What came with the end, such as the last events, is not what rest costs.
	if err := wait(ctx, settling); err != nil {
		return r, err
	}
	before, err := m.measure(ctx)
	if err != nil {
		return r, err
	}
	if err := wait(ctx, o.idle); err != nil {
		return r, err
	}
	after, err := m.measure(ctx)
	r.atRest = (after.reads + after.writes - before.reads - before.writes) / o.idle.Minutes()
	return r, err
}

const settling = 15 * time.Second

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// result is what one simulation has shown.
type result struct {
	benchmarks, runs int
	took             time.Duration
	busy             measurement
	events           int
	peak             int64 // bytes
	atRest           float64
}

// print writes the results as a table in Markdown.
func print(w io.Writer, o options, all []result) error {
	fmt.Fprintf(w, "%d runs for each benchmark, %d servers, %d namespaces\n\n", o.runs, o.servers, o.namespaces)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	row := func(name string, value func(result) string) {
		fmt.Fprintf(t, "| %s\t", name)
		for _, r := range all {
			fmt.Fprintf(t, "| %s\t", value(r))
		}
		fmt.Fprintln(t, "|")
	}
	perRun := func(n float64, r result) string { return fmt.Sprintf("%.1f", n/float64(r.runs)) }
	row("benchmarks", func(r result) string { return fmt.Sprint(r.benchmarks) })
	row("---", func(result) string { return "---" })
	row("runs", func(r result) string { return fmt.Sprint(r.runs) })
	row("time", func(r result) string { return r.took.Round(time.Second).String() })
	row("runs per second", func(r result) string { return fmt.Sprintf("%.1f", float64(r.runs)/r.took.Seconds()) })
	row("API writes per run, events aside", func(r result) string { return perRun(r.busy.writes-float64(r.events), r) })
	row("API reads per run", func(r result) string { return perRun(r.busy.reads, r) })
	row("events per benchmark", func(r result) string { return fmt.Sprintf("%.1f", float64(r.events)/float64(r.benchmarks)) })
	row("reconciliations per run", func(r result) string { return perRun(r.busy.reconciliations, r) })
	row("reconciliation, median", func(r result) string { return milliseconds(r.busy.quantile(0.5)) })
	row("reconciliation, 99th percentile", func(r result) string { return milliseconds(r.busy.quantile(0.99)) })
	row("manager's CPU per run", func(r result) string { return milliseconds(r.busy.cpu / float64(r.runs)) })
	row("manager's peak memory", func(r result) string { return fmt.Sprintf("%d MiB", r.peak>>20) })
	row("API requests per minute at rest", func(r result) string { return fmt.Sprintf("%.1f", r.atRest) })
	return t.Flush()
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.0f ms", seconds*1000) }
