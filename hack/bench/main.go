//go:build linux

// Command bench holds the runner against the tools whose loads it generates, on one
// private server, in turns:
//
//	go run ./hack/bench slap
//
// It prints, for each cell of clients × queries per client, the median and the range
// of the pairwise ratios of elapsed times, ours over the tool's.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dbbench.dev/operator/test/mariadb"
)

// cell is one size of load.
type cell struct {
	clients, queries int // queries per client
}

// contestant runs a load on a server and says how long it took by its own clock.
type contestant interface {
	run(ctx context.Context, s *mariadb.Server, c cell) (time.Duration, error)
}

// match is a comparison of the runner with one tool.
type match struct {
	name  string
	cells []cell
	// prepare makes the contestants; dir is for what they need.
	prepare func(dir, runner string) (ours, theirs contestant, err error)
}

var matches = []match{slapMatch}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	pairs := flags.Int("pairs", 5, "pairs of runs per cell")
	target := flags.Float64("target", 1.05, "the ratio that the median is to stay below")
	if len(args) == 0 {
		return fmt.Errorf("usage: bench %s [options]", strings.Join(names(), "|"))
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *pairs < 1 {
		return fmt.Errorf("-pairs is %d, must be at least 1", *pairs)
	}
	for _, m := range matches {
		if m.name == args[0] {
			return m.play(ctx, *pairs, *target, out)
		}
	}
	return fmt.Errorf("no such comparison %q; there are: %s", args[0], strings.Join(names(), ", "))
}

func names() []string {
	var out []string
	for _, m := range matches {
		out = append(out, m.name)
	}
	return out
}

func (m match) play(ctx context.Context, pairs int, target float64, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	runner := filepath.Join(dir, "runner")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", runner, "./cmd/runner").CombinedOutput(); err != nil {
		return fmt.Errorf("build the runner: %w\n%s", err, text)
	}
	// The server has its default durability: a commit is a write to the disk.
	server, err := mariadb.New(filepath.Join(dir, "server"), "--innodb-buffer-pool-size=512M")
	if err != nil {
		return err
	}
	defer server.Stop()
	ours, theirs, err := m.prepare(dir, runner)
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "%7s  %14s  %9s  %9s  %6s  %6s  %6s  %5s  target %.2f\n",
		"clients", "queries/client", "ours", m.name, "ratio", "min", "max", "pairs", target)
	for _, c := range m.cells {
		r, err := compare(ctx, server, ours, theirs, c, pairs)
		if err != nil {
			return err
		}
		verdict := "met"
		if median(r.ratios) > target {
			verdict = "missed"
		}
		fmt.Fprintf(out, "%7d  %14d  %8.3fs  %8.3fs  %6.3f  %6.3f  %6.3f  %5d  %s\n", c.clients, c.queries,
			median(r.ours), median(r.theirs), median(r.ratios), slices.Min(r.ratios), slices.Max(r.ratios), pairs, verdict)
	}
	return nil
}

// result holds the elapsed times of the pairs in seconds, and their ratios.
type result struct{ ours, theirs, ratios []float64 }

// compare runs pairs in turns; who goes first changes, so that drift hits both alike.
// One pair before does not count: it fills the caches.
func compare(ctx context.Context, s *mariadb.Server, ours, theirs contestant, c cell, pairs int) (result, error) {
	var r result
	for i := range pairs + 1 {
		order := []contestant{ours, theirs}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		elapsed := map[contestant]float64{}
		for _, x := range order {
			d, err := x.run(ctx, s, c)
			if err != nil {
				return r, err
			}
			elapsed[x] = d.Seconds()
		}
		if i == 0 {
			continue
		}
		r.ours = append(r.ours, elapsed[ours])
		r.theirs = append(r.theirs, elapsed[theirs])
		r.ratios = append(r.ratios, elapsed[ours]/elapsed[theirs])
	}
	return r, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
