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
	"strconv"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// slapMatch is the load of the mysqlslap INSERT document: single-row INSERTs into an
// InnoDB table with AUTO_INCREMENT.
var slapMatch = match{
	name:  "slap",
	cells: []cell{{1, 1000}, {1, 10000}, {10, 1000}, {10, 10000}},
	prepare: func(dir, runner string) (contestant, contestant, error) {
		tool, err := exec.LookPath("mariadb-slap")
		if err != nil {
			return nil, nil, fmt.Errorf("%w: install it with: %s", err, mariadb.Packages)
		}
		ours := &runnerContestant{program: runner, dir: dir, workload: contract.Workload{Slap: &contract.Slap{
			LoadType: contract.SlapWrite, Engine: "InnoDB", AutoIncrement: true, IntColumns: 1, CharColumns: 1,
			UniqueQueries: 10, UniqueWrites: 10, PreloadRows: 100, ExactCounts: true, TimingIncludesConnect: true,
		}}}
		return ours, &slapContestant{program: tool}, nil
	},
}

// slapContestant is mariadb-slap.
type slapContestant struct{ program string }

func (s *slapContestant) run(ctx context.Context, server *mariadb.Server, c cell) (time.Duration, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, "--no-defaults", "--user=root", "--socket="+server.Socket,
		"--auto-generate-sql", "--auto-generate-sql-load-type=write", "--auto-generate-sql-add-autoincrement", "--engine=InnoDB",
		"--concurrency="+strconv.Itoa(c.clients), "--number-of-queries="+strconv.Itoa(c.clients*c.queries), "--csv")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// The tool leaves with 0 also after a failed query, and says so on stderr alone.
	err := cmd.Run()
	if err == nil && stderr.Len() > 0 {
		err = errors.New("a query failed")
	}
	if err != nil {
		return 0, fmt.Errorf("mariadb-slap: %w\n%s", err, stderr.String())
	}
	fields, err := csv.NewReader(&stdout).Read()
	if err != nil {
		return 0, fmt.Errorf("mariadb-slap: %w", err)
	}
	if len(fields) < 3 {
		return 0, fmt.Errorf("mariadb-slap wrote %q", fields)
	}
	seconds, err := strconv.ParseFloat(fields[2], 64) // engine, load type, average
	return time.Duration(seconds * float64(time.Second)), err
}

// runnerContestant is the runner, as a pod would run it.
type runnerContestant struct {
	program, dir string
	workload     contract.Workload
}

func (r *runnerContestant) run(ctx context.Context, server *mariadb.Server, c cell) (time.Duration, error) {
	user, password, path := filepath.Join(r.dir, "user"), filepath.Join(r.dir, "password"), filepath.Join(r.dir, "spec.json")
	spec := contract.RunSpec{
		Run: contract.Run{ID: "bench", Namespace: "bench", Benchmark: "bench", BenchmarkUID: "bench", Execution: "bench"},
		Target: contract.Target{Name: "private", Socket: server.Socket, Database: "dbbench", UsernameFile: user, PasswordFile: password,
			TLS: contract.TLS{Mode: contract.TLSDisabled}},
		Workload: r.workload,
		Load:     contract.Load{Clients: int32(c.clients), EventsPerClient: int64(c.queries)},
		Prepare:  contract.PreparePerRun, Cleanup: contract.CleanupAlways, Replicas: 1,
		Timeout: contract.Duration(time.Hour), ProgressInterval: contract.Duration(5 * time.Second),
	}
	b, err := contract.EncodeRunSpec(spec)
	if err != nil {
		return 0, err
	}
	for name, content := range map[string][]byte{user: []byte("root"), password: nil, path: b} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return 0, err
		}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, r.program, "--spec", path)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("runner: %w\n%s", err, stderr.String())
	}
	record, err := contract.ReadRecord(&stdout, spec.Run)
	if err != nil {
		return 0, err
	}
	if want := int64(c.clients * c.queries); record.Result.Events != want {
		return 0, fmt.Errorf("runner: %d events, want %d", record.Result.Events, want)
	}
	return time.Duration(record.Result.ElapsedNanos), nil
}
