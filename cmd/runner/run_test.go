//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// checkCounts holds the parts of a record against each other.
func checkCounts(t *testing.T, r *contract.Record) {
	t.Helper()
	var series int64
	for _, i := range r.Series {
		series += i.Events
	}
	if series != r.Result.Events {
		t.Errorf("the series counts %d events, the result %d", series, r.Result.Events)
	}
	for _, o := range r.Operations {
		h, err := hdr.Decode([]byte(o.Histogram))
		if err != nil {
			t.Fatalf("histogram of %s: %v", o.Name, err)
		}
		if h.TotalCount() != o.Count {
			t.Errorf("the histogram of %s counts %d values, the operation %d", o.Name, h.TotalCount(), o.Count)
		}
	}
}

func seconds(n float64) contract.Duration { return contract.Duration(n * float64(time.Second)) }

func TestRecordOfARun(t *testing.T) {
	server := mariadb.Start(t)
	spec := slapSpec(t, server)
	spec.Load = contract.Load{Clients: 4, EventsPerClient: 110}
	spec.Workload.Slap.AutoIncrement = true
	spec.Workload.Slap.CommitEvery = 10
	r := mustSucceed(t, spec)
	checkCounts(t, r)

	if r.Result.Events != 440 || r.Result.Attempts != 440 || r.Result.Errors != 0 || r.Result.Clients != 4 {
		t.Errorf("result %+v, want 440 events of 4 clients", r.Result)
	}
	if r.Result.ElapsedNanos <= 0 || r.Result.MeasureStartUnixNanos < r.Start.UnixNanos {
		t.Errorf("result %+v: times", r.Result)
	}
	// 6 INSERTs and 5 SELECTs to a pass. SET AUTOCOMMIT, the COMMITs and the last COMMIT
	// are neither.
	if got := [3]int64{r.Result.Writes, r.Result.Reads, r.Result.Other}; got != [3]int64{240, 200, 4 * (1 + 11 + 1)} {
		t.Errorf("writes, reads, other: %v", got)
	}
	counts := map[string]int64{}
	for _, o := range r.Operations {
		counts[o.Name] = o.Count
	}
	if len(counts) != 2 || counts["insert"] != 240 || counts["select"] != 200 {
		t.Errorf("operations %v", counts)
	}
	e := r.Environment
	if e.ServerFlavor != "MariaDB" || !strings.HasPrefix(e.ServerVersion, "10.") || e.ServerVariables["innodb_flush_log_at_trx_commit"] != "0" {
		t.Errorf("environment %+v", e)
	}
	if len(e.ServerVariables) < 100 || len(e.ServerVariablesSHA256) != 64 {
		t.Errorf("%d variables, hash %q", len(e.ServerVariables), e.ServerVariablesSHA256)
	}
	if u := e.Runner; u.Node != "node-1" || u.CPUModel == "" || int(u.Cores) != runtime.NumCPU() {
		t.Errorf("the runner's machine: %+v", u)
	}
	if d := e.StatusDeltas; d["Com_insert"] != 240 || d["Com_select"] != 200 || d["Com_commit"] != 48 {
		t.Errorf("status deltas %v", d)
	}
	if e.Runner.CPUUserNanos+e.Runner.CPUSystemNanos <= 0 || e.Runner.GOMAXPROCS < 1 || e.Runner.MaxRSSBytes < 1<<20 {
		t.Errorf("usage of the runner %+v", e.Runner)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

func TestStopRules(t *testing.T) {
	server := mariadb.Start(t)
	t.Run("events are shared exactly where counts need not be the tool's", func(t *testing.T) {
		spec := slapSpec(t, server)
		spec.Workload.Slap.ExactCounts = false
		spec.Load = contract.Load{Clients: 7, Events: 1000}
		if r := mustSucceed(t, spec).Result; r.Events != 1000 || r.Attempts != 1000 {
			t.Errorf("%d events, %d attempts, want 1000", r.Events, r.Attempts)
		}
	})
	t.Run("duration", func(t *testing.T) {
		spec := slapSpec(t, server)
		spec.Workload.Slap.LoadType = contract.SlapKey
		spec.Workload.Slap.AutoIncrement = true
		spec.Load = contract.Load{Clients: 2, Duration: seconds(1.5)}
		r := mustSucceed(t, spec)
		checkCounts(t, r)
		if elapsed := time.Duration(r.Result.ElapsedNanos); elapsed < 1500*time.Millisecond || r.Result.Events == 0 {
			t.Errorf("%d events in %s", r.Result.Events, elapsed)
		}
	})
	t.Run("the first rule that is met", func(t *testing.T) {
		spec := slapSpec(t, server)
		spec.Load = contract.Load{Clients: 2, EventsPerClient: 5, Events: 1 << 40, Duration: seconds(600)}
		if r := mustSucceed(t, spec).Result; r.Events != 10 {
			t.Errorf("%d events, want 10", r.Events)
		}
	})
	t.Run("warm-up is not measured", func(t *testing.T) {
		spec := slapSpec(t, server)
		spec.Load = contract.Load{Clients: 2, EventsPerClient: 50, Warmup: seconds(1)}
		before := server.Status(t, "Com_insert")["Com_insert"]
		r := mustSucceed(t, spec)
		checkCounts(t, r)
		if r.Result.Events != 100 || r.Result.Reads+r.Result.Writes != 100 {
			t.Errorf("%d events, %d statements, want 100", r.Result.Events, r.Result.Reads+r.Result.Writes)
		}
		if sent := server.Status(t, "Com_insert")["Com_insert"] - before; sent < 500 {
			t.Errorf("%d INSERTs in all: there was no warm-up", sent)
		}
		if r.Result.MeasureStartUnixNanos-r.Start.UnixNanos < int64(time.Second) {
			t.Error("the measured part began before the warm-up was over")
		}
	})
	t.Run("connecting may be left out of the time", func(t *testing.T) {
		spec := slapSpec(t, server)
		spec.Workload.Slap.TimingIncludesConnect = false
		spec.Load = contract.Load{Clients: 100, EventsPerClient: 11}
		if r := mustSucceed(t, spec).Result; r.Events != 1100 {
			t.Errorf("%d events, want 1100", r.Events)
		}
	})
}

func TestSeedMakesTheSameRows(t *testing.T) {
	server := mariadb.Start(t)
	sums := map[int64][]string{}
	for _, seed := range []int64{1, 1, 2} {
		spec := slapSpec(t, server)
		spec.Cleanup = contract.CleanupNever
		spec.Workload.Slap.Seed = &seed
		spec.Workload.Slap.AutoIncrement = true
		mustSucceed(t, spec)
		sums[seed] = append(sums[seed], checksum(t, server, "dbbench.t1"))
	}
	if sums[1][0] != sums[1][1] || sums[1][0] == sums[2][0] {
		t.Errorf("checksums by seed: %v", sums)
	}
}

func checksum(t *testing.T, s *mariadb.Server, table string) string {
	t.Helper()
	return s.Rows(t, "CHECKSUM TABLE "+table)[0][1]
}

func TestSQLModesDoNotMatter(t *testing.T) {
	server := mariadb.Start(t, "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT")
	spec := slapSpec(t, server)
	spec.Target.Database = "bench-mark$1"
	spec.Target.SessionVariables = map[string]string{"sql_mode": "ANSI", "max_statement_time": "30", "time_zone": `+00:00`}
	if r := mustSucceed(t, spec).Result; r.Events != 11 {
		t.Errorf("%d events, want 11", r.Events)
	}
}

// long is a run that a test ends.
func long(t *testing.T, s *mariadb.Server) contract.RunSpec {
	spec := slapSpec(t, s)
	spec.Load = contract.Load{Clients: 3, Duration: seconds(60)}
	spec.Workload.Slap.LoadType = contract.SlapWrite
	spec.ProgressInterval = contract.Duration(100 * time.Millisecond)
	return spec
}

const measuring = `"phase":"Measure"`

func TestSIGTERMKeepsWhatWasMeasured(t *testing.T) {
	server := mariadb.Start(t)
	p := start(t, long(t, server))
	p.await(measuring)
	time.Sleep(time.Second)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := p.wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s to end", took)
	}
	mustFail(t, o, contract.ClassInterrupted)
	checkCounts(t, o.record)
	if r := o.record.Result; r.Outcome != contract.OutcomePartial || r.Events == 0 || r.ElapsedNanos < int64(time.Second) {
		t.Errorf("result %+v", r)
	}
	if d := o.record.Environment.StatusDeltas["Com_insert"]; d < o.record.Result.Events {
		t.Errorf("the server counted %d INSERTs, the runner %d", d, o.record.Result.Events)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

func TestSIGTERMDuringAHungStatement(t *testing.T) {
	server := mariadb.Start(t)
	spec := long(t, server)
	p := start(t, spec)
	p.await(measuring)
	// The clients wait for a lock; the grace is over before they get it.
	conn, err := server.Root.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "LOCK TABLES dbbench.t1 READ"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := p.wait()
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("it took %s to end", took)
	}
	mustFail(t, o, contract.ClassInterrupted)
	if len(o.record.Result.Warnings) == 0 {
		t.Error("no word of the clean-up that could not be done")
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "UNLOCK TABLES")
	if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
		t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
	}
}

func TestSIGTERMBeforeTheLoad(t *testing.T) {
	server := mariadb.Start(t)
	spec := long(t, server)
	spec.Workload.Slap.PreloadRows = 100_000_000
	p := start(t, spec)
	p.await(`"phase":"Prepare"`)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o := p.wait()
	mustFail(t, o, contract.ClassInterrupted)
	if o.record.Result.Outcome != contract.OutcomeFailed {
		t.Errorf("outcome %s of a run that measured nothing", o.record.Result.Outcome)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

func TestTimeoutKeepsWhatWasMeasured(t *testing.T) {
	server := mariadb.Start(t)
	spec := long(t, server)
	spec.Timeout = seconds(4)
	o := runSpec(t, spec)
	f := mustFail(t, o, contract.ClassDeadlineExceeded)
	if !strings.Contains(f.Hint, "runTimeout") || o.record.Result.Outcome != contract.OutcomePartial || o.record.Result.Events == 0 {
		t.Errorf("result %+v, failure %+v", o.record.Result, f)
	}
}

func TestServerKilledDuringTheLoad(t *testing.T) {
	server := mariadb.Start(t)
	p := start(t, long(t, server))
	p.await(measuring)
	time.Sleep(500 * time.Millisecond)
	server.Kill()
	o := p.wait()
	mustFail(t, o, contract.ClassTargetUnreachable)
	checkCounts(t, o.record)
	if r := o.record.Result; r.Outcome != contract.OutcomePartial || r.Events == 0 || r.Errors == 0 {
		t.Errorf("result %+v", r)
	}
	if len(o.record.Result.Warnings) == 0 {
		t.Error("no word of the clean-up that could not be done")
	}
}

func TestAnErrorFailsTheRun(t *testing.T) {
	server := mariadb.Start(t)
	spec := long(t, server)
	p := start(t, spec)
	p.await(measuring)
	time.Sleep(200 * time.Millisecond)
	server.Exec(t, "ALTER TABLE dbbench.t1 ADD COLUMN extra INT") // the INSERTs lack a value
	o := p.wait()
	f := mustFailWithoutHint(t, o, contract.ClassWorkloadFailed)
	const wrongCount = 1136 // ER_WRONG_VALUE_COUNT_ON_ROW
	r := o.record.Result
	if f.MySQLError != wrongCount || r.Outcome != contract.OutcomeFailed || r.ErrorsByNumber[wrongCount] == 0 || r.ErrorsByNumber[wrongCount] != r.Errors {
		t.Errorf("failure %+v, result %+v", f, r)
	}
}

func mustFailWithoutHint(t *testing.T, o outcome, class contract.Class) *contract.Failure {
	t.Helper()
	if o.exit != exitFailed || o.recordErr != nil || o.record.Result.Failure == nil || o.record.Result.Failure.Class != class {
		t.Fatalf("exit code %d, record %v\n%s\n%s", o.exit, o.recordErr, tail(o.stdout), o.stderr)
	}
	return o.record.Result.Failure
}

func TestThePasswordIsNowhere(t *testing.T) {
	server := mariadb.Start(t)
	spec := long(t, server)
	p := start(t, spec)
	p.await(measuring)
	for _, file := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.command.Process.Pid, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(mariadb.Password)) {
			t.Errorf("the password is in the runner's %s", file)
		}
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait() // looks into the output

	// A wrong password that the server refuses.
	canary := mariadb.Password + "-wrong"
	if err := os.WriteFile(spec.Target.PasswordFile, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	p = start(t, spec)
	o := p.wait()
	mustFail(t, o, contract.ClassAuthenticationFailed)
	termination, err := os.ReadFile(p.termination)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(o.stdout+o.stderr+string(termination), canary) {
		t.Error("the password is in the output")
	}
}

func TestUsage(t *testing.T) {
	server := mariadb.Start(t)
	good := slapSpec(t, server)
	path := t.TempDir() + "/spec.json"
	b, err := contract.EncodeRunSpec(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		exit int
		want string // part of stderr
	}{
		{"help", []string{"--help"}, nil, exitOK, "termination-log"},
		{"unknown flag", []string{"--nope"}, nil, exitUsage, "nope"},
		{"unknown command", []string{"dance"}, nil, exitUsage, "cleanup"},
		{"no spec", []string{"--spec", "/nowhere/spec.json"}, nil, exitUsage, "InvalidRunSpec"},
		{"replica is no number", []string{"--spec", path}, map[string]string{"JOB_COMPLETION_INDEX": "x"}, exitUsage, "JOB_COMPLETION_INDEX"},
		{"replica out of range", []string{"--spec", path}, map[string]string{"JOB_COMPLETION_INDEX": "1"}, exitUsage, "0 to 0"},
		{"good", []string{"--spec", path}, map[string]string{"JOB_COMPLETION_INDEX": "0"}, exitOK, ""},
	} {
		var stdout, stderr bytes.Buffer
		exit := run(t.Context(), tt.args, &stdout, &stderr, func(name string) string { return tt.env[name] })
		if exit != tt.exit || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: exit code %d, want %d; stderr %q, want %q in it", tt.name, exit, tt.exit, stderr.String(), tt.want)
		}
	}
}

func TestTheRecordCannotBeWritten(t *testing.T) {
	server := mariadb.Start(t)
	spec := slapSpec(t, server)
	b, err := contract.EncodeRunSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/spec.json"
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	if exit := run(t.Context(), []string{"--spec", path}, full, &stderr, os.Getenv); exit != exitNoRecord {
		t.Errorf("exit code %d, want %d: %s", exit, exitNoRecord, stderr.String())
	}
}

func TestManyClients(t *testing.T) {
	const clients = 600
	server := mariadb.Start(t, "--max-connections="+strconv.Itoa(clients+10), "--back-log=1000")
	spec := slapSpec(t, server)
	spec.Load = contract.Load{Clients: clients}
	r := mustSucceed(t, spec)
	checkCounts(t, r)
	if r.Result.Events != clients*11 {
		t.Errorf("%d events, want %d", r.Result.Events, clients*11)
	}
}
