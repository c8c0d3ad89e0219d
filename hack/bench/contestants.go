//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// rows are those of the table of sysbench's loads.
const rows = 100_000

// output runs a program and returns what it wrote, with what the kernel says of it.
func output(ctx context.Context, name string, args ...string) ([]byte, sample, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, sample{}, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, stderr.String(), stdout.String())
	}
	s := sample{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = usage.Maxrss << 10
	}
	return append(stdout.Bytes(), stderr.Bytes()...), s, nil
}

func oltpWorkload(script string) contract.Workload {
	return contract.Workload{OLTP: &contract.OLTP{
		Script: script, Compat: contract.Sysbench10, Tables: 1, TableSize: rows, Engine: "InnoDB", AutoIncrement: true, CreateSecondary: true,
		PointSelects: 10, RangeSelects: true, RangeSize: 100, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1, RandomPoints: 10, NumberOfRanges: 10, Delta: 5,
		IgnoreErrors: []int32{1213, 1020, 1205}, Loaders: 2,
	}}
}

// prepare makes the table that both sides of sysbench's loads use.
func (b *bench) prepare(ctx context.Context) error {
	_, err := b.runner(oltpWorkload(contract.OLTPReadWrite), contract.Load{Clients: 1, Events: 1}, contract.PreparePerDataset)(ctx)
	return err
}

// runner is the runner, as a pod would run it.
func (b *bench) runner(workload contract.Workload, load contract.Load, prepare contract.Prepare) contestant {
	cleanup, database := contract.CleanupNever, "dbbench"
	if prepare == contract.PreparePerRun {
		cleanup, database = contract.CleanupAlways, "slap"
	}
	return func(ctx context.Context) (sample, error) {
		user, password, path := filepath.Join(b.dir, "user"), filepath.Join(b.dir, "password"), filepath.Join(b.dir, "spec.json")
		spec := contract.RunSpec{
			Run: contract.Run{ID: "bench", Namespace: "bench", Benchmark: "bench", BenchmarkUID: "bench", Execution: "bench"},
			Target: contract.Target{Name: "private", Socket: b.server.Socket, Database: database, UsernameFile: user, PasswordFile: password,
				TLS: contract.TLS{Mode: contract.TLSDisabled}},
			Workload: workload, Load: load, Prepare: prepare, Cleanup: cleanup, Replicas: 1,
			Timeout: contract.Duration(time.Hour), ProgressInterval: contract.Duration(5 * time.Second),
		}
		if b.tcp {
			spec.Target.Socket, spec.Target.Host, spec.Target.Port = "", b.server.Host, int32(b.server.Port)
		}
		text, err := contract.EncodeRunSpec(spec)
		if err != nil {
			return sample{}, err
		}
		for name, content := range map[string]string{user: mariadb.User, password: mariadb.Password, path: string(text)} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				return sample{}, err
			}
		}
		out, s, err := output(ctx, b.program, "--spec", path)
		if err != nil {
			return s, err
		}
		record, err := contract.ReadRecord(bytes.NewReader(out), spec.Run)
		if err != nil {
			return s, err
		}
		for _, w := range record.Result.Warnings {
			fmt.Fprintln(os.Stderr, "  runner:", w)
		}
		s.elapsed, s.events = time.Duration(record.Result.ElapsedNanos), record.Result.Events
		s.p99, err = percentile(record.Operations)
		return s, err
	}
}

// percentile is the 99th over all operations.
func percentile(operations []contract.Operation) (time.Duration, error) {
	var all *hdr.Histogram
	for _, o := range operations {
		h, err := hdr.Decode([]byte(o.Histogram))
		if err != nil {
			return 0, err
		}
		if all == nil {
			all = h
		} else {
			all.Merge(h)
		}
	}
	if all == nil {
		return 0, errors.New("there are no latencies")
	}
	return time.Duration(all.ValueAtQuantile(99)), nil
}

var (
	sysbenchEvents  = regexp.MustCompile(`total number of events:\s+(\d+)`)
	sysbenchElapsed = regexp.MustCompile(`total time:\s+([0-9.]+)s`)
	sysbenchP99     = regexp.MustCompile(`99th percentile:\s+([0-9.]+)`)
)

// sysbench is the tool, on the table that the runner has made. A rate of 0 is a closed
// loop.
func (b *bench) sysbench(script string, clients int, rate int64) (contestant, error) {
	tool, err := exec.LookPath("sysbench")
	if err != nil {
		return nil, fmt.Errorf("%w: install it with: apt-get install -y --no-install-recommends sysbench", err)
	}
	args := []string{script, "--db-driver=mysql", "--mysql-user=" + mariadb.User, "--mysql-password=" + mariadb.Password, "--mysql-db=dbbench",
		"--mysql-ssl=off", "--tables=1", "--table-size=" + strconv.Itoa(rows), "--threads=" + strconv.Itoa(clients), "--events=0", "--percentile=99",
		"--time=" + strconv.Itoa(int(b.seconds.Seconds())), "--rate=" + strconv.FormatInt(rate, 10)}
	if b.tcp {
		args = append(args, "--mysql-host="+b.server.Host, "--mysql-port="+strconv.Itoa(b.server.Port))
	} else {
		args = append(args, "--mysql-socket="+b.server.Socket)
	}
	return func(ctx context.Context) (sample, error) {
		out, s, err := output(ctx, tool, append(args, "run")...)
		if err != nil {
			return s, err
		}
		numbers := make([]float64, 3)
		for i, pattern := range []*regexp.Regexp{sysbenchEvents, sysbenchElapsed, sysbenchP99} {
			m := pattern.FindSubmatch(out)
			if m == nil {
				return s, fmt.Errorf("sysbench wrote nothing like %q:\n%s", pattern, out)
			}
			if numbers[i], err = strconv.ParseFloat(string(m[1]), 64); err != nil {
				return s, err
			}
		}
		s.events, s.elapsed = int64(numbers[0]), time.Duration(numbers[1]*float64(time.Second))
		s.p99 = time.Duration(numbers[2] * float64(time.Millisecond))
		return s, nil
	}, nil
}

// slap is mariadb-slap with the load of the mysqlslap INSERT document: single-row
// INSERTs into an InnoDB table with AUTO_INCREMENT.
func (b *bench) slap(clients, queries int) (contestant, error) {
	tool, err := exec.LookPath("mariadb-slap")
	if err != nil {
		return nil, fmt.Errorf("%w: install it with: %s", err, mariadb.Packages)
	}
	args := []string{"--no-defaults", "--user=" + mariadb.User, "--password=" + mariadb.Password,
		"--auto-generate-sql", "--auto-generate-sql-load-type=write", "--auto-generate-sql-add-autoincrement", "--engine=InnoDB",
		"--concurrency=" + strconv.Itoa(clients), "--number-of-queries=" + strconv.Itoa(clients*queries), "--csv"}
	if b.tcp {
		args = append(args, "--host="+b.server.Host, "--port="+strconv.Itoa(b.server.Port), "--skip-ssl")
	} else {
		args = append(args, "--socket="+b.server.Socket)
	}
	return func(ctx context.Context) (sample, error) {
		out, s, err := output(ctx, tool, args...)
		if err != nil {
			return s, err
		}
		// The tool leaves with 0 also after a failed query, and says so on stderr alone.
		records, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
		if err != nil || len(records) != 1 || len(records[0]) < 3 {
			return s, fmt.Errorf("mariadb-slap wrote %q", out)
		}
		seconds, err := strconv.ParseFloat(records[0][2], 64) // engine, load type, average
		s.events, s.elapsed = int64(clients*queries), time.Duration(seconds*float64(time.Second))
		return s, err
	}, nil
}
