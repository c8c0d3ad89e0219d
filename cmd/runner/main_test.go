//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// asRunner has the test binary be the runner, so that tests see what a pod would: a
// process with arguments, signals and an exit code.
const asRunner = "DBBENCH_TEST_AS_RUNNER"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		main()
	}
	os.Exit(m.Run())
}

// slapSpec is a run of slap as a resource without options gives it.
func slapSpec(t *testing.T, s *mariadb.Server) contract.RunSpec {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return contract.RunSpec{
		Version: contract.RunSpecVersion,
		Run: contract.Run{ID: "mariadb-p1-i1", Namespace: "tests", Benchmark: "bench", BenchmarkUID: "uid-1",
			Execution: "e1", Point: "p1", Iteration: 1},
		Target: contract.Target{
			Name: "mariadb", Host: s.Host, Port: int32(s.Port), Database: "dbbench",
			// Editors leave a newline at the end of a Secret's value.
			UsernameFile: write("username", mariadb.User+"\n"), PasswordFile: write("password", mariadb.Password+"\n"),
			TLS: contract.TLS{Mode: contract.TLSPreferred},
		},
		Workload: contract.Workload{Slap: &contract.Slap{LoadType: contract.SlapMixed, IntColumns: 1, CharColumns: 1,
			UniqueQueries: 10, UniqueWrites: 10, PreloadRows: 100, ExactCounts: true, TimingIncludesConnect: true}},
		Load:    contract.Load{Clients: 1},
		Prepare: contract.PreparePerRun, Cleanup: contract.CleanupAlways, Replicas: 1,
		Timeout: contract.Duration(time.Minute), ProgressInterval: contract.Duration(time.Second),
	}
}

// process is a runner that was started.
type process struct {
	t              *testing.T
	spec           contract.RunSpec
	command        *exec.Cmd
	stdout, stderr *watched
	termination    string
}

// watched is an output that a test can wait for.
type watched struct {
	mu      sync.Mutex
	buffer  bytes.Buffer
	changed chan struct{}
}

func newWatched() *watched { return &watched{changed: make(chan struct{}, 1)} }

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return w.buffer.Write(b)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}

// outcome is how a runner ended.
type outcome struct {
	exit           int
	record         *contract.Record
	recordErr      error
	termination    *contract.TerminationMessage
	stdout, stderr string
}

func start(t *testing.T, spec contract.RunSpec, args ...string) *process {
	t.Helper()
	return startReplica(t, spec, 0, args...)
}

func startReplica(t *testing.T, spec contract.RunSpec, index int, args ...string) *process {
	t.Helper()
	b, err := contract.EncodeRunSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "spec.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, spec: spec, stdout: newWatched(), stderr: newWatched(), termination: filepath.Join(dir, "termination")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.command = exec.Command(self, append(args, "--spec", path, "--termination-log", p.termination)...)
	p.command.Env = append(os.Environ(), asRunner+"=1", contract.ReplicaEnv+"="+strconv.Itoa(index), contract.NodeNameEnv+"=node-1")
	p.command.Stdout, p.command.Stderr = p.stdout, p.stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// await waits until the runner has written the text.
func (p *process) await(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for !strings.Contains(p.stdout.text(), text) {
		select {
		case <-p.stdout.changed:
		case <-ctx.Done():
			p.t.Fatalf("the runner did not write %q:\n%s\n%s", text, tail(p.stdout.text()), p.stderr.text())
		}
	}
}

// tail is the end of an output, for messages.
func tail(s string) string { return s[max(0, len(s)-2000):] }

func (p *process) wait() outcome {
	p.t.Helper()
	_ = p.command.Wait() // the exit code says it
	o := outcome{exit: p.command.ProcessState.ExitCode(), stdout: p.stdout.text(), stderr: p.stderr.text()}
	o.record, o.recordErr = contract.ReadRecord(strings.NewReader(o.stdout), p.spec.Run)
	if b, err := os.ReadFile(p.termination); err == nil {
		if o.termination, err = contract.DecodeTerminationMessage(b); err != nil {
			p.t.Errorf("termination message %q: %v", b, err)
		}
	}
	if strings.Contains(o.stdout+o.stderr, mariadb.Password) {
		p.t.Error("the password is in the output")
	}
	return o
}

func runSpec(t *testing.T, spec contract.RunSpec, args ...string) outcome {
	t.Helper()
	return start(t, spec, args...).wait()
}

// mustSucceed returns the record of a run that has to succeed.
func mustSucceed(t *testing.T, spec contract.RunSpec) *contract.Record {
	t.Helper()
	o := runSpec(t, spec)
	if o.exit != exitOK || o.recordErr != nil || o.record.Result.Outcome != contract.OutcomeSucceeded {
		t.Fatalf("exit code %d, record %v\n%s\n%s", o.exit, o.recordErr, tail(o.stdout), o.stderr)
	}
	if o.termination == nil || o.termination.Outcome != contract.OutcomeSucceeded || o.termination.Run != spec.Run.ID {
		t.Fatalf("termination message %+v", o.termination)
	}
	return o.record
}

// mustFail returns the failure of a run that has to fail, after comparing record,
// termination message and exit code.
func mustFail(t *testing.T, o outcome, class contract.Class) *contract.Failure {
	t.Helper()
	if o.exit != exitFailed || o.recordErr != nil {
		t.Fatalf("exit code %d, record %v\n%s\n%s", o.exit, o.recordErr, tail(o.stdout), o.stderr)
	}
	f := o.record.Result.Failure
	if f == nil || f.Class != class {
		t.Fatalf("got failure %+v, want class %s", f, class)
	}
	if f.Hint == "" {
		t.Errorf("%v: no hint what to do", f)
	}
	if o.termination == nil || o.termination.Failure == nil || *o.termination.Failure != *f {
		t.Errorf("termination message %+v, want the record's failure %+v", o.termination, f)
	}
	return f
}
