//go:build linux

// Command bench holds the runner against the tools whose loads it generates, on one
// private server:
//
//	go run ./hack/bench [flags]
//
// Ours and theirs run in turns, in pairs, so that whatever else the machine does hits
// both alike; what is printed are medians of the ratios of pairs, with their range. See
// docs/performance.md.
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
	"slices"
	"strconv"
	"strings"
	"time"

	"dbbench.dev/operator/test/mariadb"
)

// options are those of the command line.
type options struct {
	cells   []*cell
	clients []int // instead of a cell's own
	pairs   int
	seconds time.Duration
	queries int
	durable bool
	tcp     bool
	program string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.program == "" {
		o.program = filepath.Join(dir, "runner")
		if text, err := exec.CommandContext(ctx, "go", "build", "-o", o.program, "./cmd/runner").CombinedOutput(); err != nil {
			return fmt.Errorf("build the runner: %w\n%s", err, text)
		}
	}
	b, err := newBench(ctx, dir, o)
	if err != nil {
		return err
	}
	defer b.server.Stop()
	printHead(out)
	for _, c := range o.cells {
		clients := c.clients
		if o.clients != nil {
			clients = o.clients
		}
		for _, n := range clients {
			fmt.Fprintf(progress, "%s, %d clients ...\n", c.name, n)
			r, err := b.compare(ctx, c, n)
			if err != nil {
				return fmt.Errorf("%s, %d clients: %w", c.name, n, err)
			}
			r.print(out, c, n)
		}
	}
	return nil
}

func parse(args []string, usage io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	names := flags.String("cells", strings.Join(cellNames(), ","), "what to compare")
	clients := flags.String("clients", "", "numbers of clients, such as 1,8,64, instead of the cells' own")
	flags.IntVar(&o.pairs, "pairs", 7, "pairs of runs")
	flags.DurationVar(&o.seconds, "time", 4*time.Second, "length of a run of sysbench's loads")
	flags.IntVar(&o.queries, "queries", 0, fmt.Sprintf("queries of each client of slap-insert (default %d over all clients)", slapQueries))
	flags.BoolVar(&o.durable, "durable", false, "have each commit be a write to the disk, as is the server's default")
	flags.BoolVar(&o.tcp, "tcp", false, "connect over TCP; the default is the server's unix socket")
	flags.StringVar(&o.program, "runner", "", "a runner that is built already")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, name := range strings.Split(*names, ",") {
		i := slices.IndexFunc(cells, func(c *cell) bool { return c.name == name })
		if i < 0 {
			return o, fmt.Errorf("-cells: there is no %q; there are %s", name, strings.Join(cellNames(), ", "))
		}
		o.cells = append(o.cells, cells[i])
	}
	if *clients != "" {
		for _, text := range strings.Split(*clients, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return o, fmt.Errorf("-clients: %q is not a number above 0", text)
			}
			o.clients = append(o.clients, n)
		}
	}
	switch {
	case o.queries < 0:
		return o, fmt.Errorf("-queries is %d, must be at least 1", o.queries)
	case o.pairs < 1:
		return o, fmt.Errorf("-pairs is %d, must be at least 1", o.pairs)
	case o.seconds < time.Second:
		return o, fmt.Errorf("-time is %s, must be at least 1s", o.seconds)
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// bench is a server with the tables that the loads need.
type bench struct {
	options
	server *mariadb.Server
	dir    string
}

func newBench(ctx context.Context, dir string, o options) (*bench, error) {
	args := []string{"--innodb-buffer-pool-size=1G", "--max-connections=5000", "--back-log=4096", "--open-files-limit=65535",
		"--max-prepared-stmt-count=1000000", "--table-open-cache=8000"}
	if !o.durable {
		args = append(args, "--innodb-flush-log-at-trx-commit=0")
	}
	server, err := mariadb.New(filepath.Join(dir, "server"), args...)
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, server: server, dir: dir}
	if err := b.prepare(ctx); err != nil {
		server.Stop()
		return nil, err
	}
	return b, nil
}

// compare runs pairs in turns; who goes first changes, so that drift hits both alike.
// One pair before does not count: it fills the caches.
func (b *bench) compare(ctx context.Context, c *cell, clients int) (*result, error) {
	ours, theirs, err := c.contestants(ctx, b, clients)
	if err != nil {
		return nil, err
	}
	r := &result{}
	for i := range b.pairs + 1 {
		pair := []contestant{ours, theirs}
		samples := make([]sample, 2)
		for k := range pair {
			who := (k + i) % 2
			if samples[who], err = pair[who](ctx); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			r.ours, r.theirs = append(r.ours, samples[0]), append(r.theirs, samples[1])
		}
	}
	return r, nil
}
