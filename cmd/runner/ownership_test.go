//go:build linux

package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// somebody makes a database with tables that are not the benchmark's. It returns a
// check that they are as they were.
func somebody(t *testing.T, s *mariadb.Server, database string, tables ...string) (check func()) {
	t.Helper()
	s.Exec(t, "CREATE DATABASE IF NOT EXISTS `"+database+"`")
	sums := map[string]string{}
	for _, name := range tables {
		name = "`" + database + "`." + name
		s.Exec(t, "CREATE TABLE "+name+" (id serial, intcol1 INT, charcol1 VARCHAR(128)) COMMENT 'dbbench is not what made this'",
			"INSERT INTO "+name+" VALUES (1, 2, 'three'), (4, 5, 'six')")
		sums[name] = checksum(t, s, name)
	}
	return func() {
		t.Helper()
		for name, want := range sums {
			if got := checksum(t, s, name); got != want {
				t.Errorf("%s has changed: its checksum is %s, was %s", name, got, want)
			}
		}
	}
}

func tables(t *testing.T, s *mariadb.Server, database string) []string {
	t.Helper()
	var out []string
	for _, r := range s.Rows(t, "SHOW TABLES FROM `"+database+"`") {
		out = append(out, r[0])
	}
	return out
}

func TestADatabaseOfSomebodyIsRefused(t *testing.T) {
	server := mariadb.Start(t)
	check := somebody(t, server, "prod", "t1", "sbtest1")
	spec := slapSpec(t, server)
	spec.Target.Database = "prod"
	f := mustFail(t, runSpec(t, spec), contract.ClassDatabaseNotOwned)
	if !strings.Contains(f.Error(), "allowExistingDatabase") {
		t.Errorf("failure %+v", f)
	}
	check()
	if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
		t.Errorf("cleanup: exit code %d", o.exit)
	}
	check()
	if got := tables(t, server, "prod"); !slices.Equal(got, []string{"sbtest1", "t1"}) {
		t.Errorf("tables %v", got)
	}
}

func TestATableOfSomebodyIsRefused(t *testing.T) {
	server := mariadb.Start(t)
	check := somebody(t, server, "prod", "t1", "sbtest1")
	spec := slapSpec(t, server)
	spec.Target.Database, spec.Target.AllowExistingDatabase = "prod", true
	f := mustFail(t, runSpec(t, spec), contract.ClassDatabaseNotOwned)
	if !strings.Contains(f.Message, "prod.t1") {
		t.Errorf("failure %+v", f)
	}
	check()
	if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
		t.Errorf("cleanup: exit code %d", o.exit)
	}
	check()
	if got := tables(t, server, "prod"); !slices.Equal(got, []string{"sbtest1", "t1"}) {
		t.Errorf("tables %v", got)
	}
}

func TestAViewOfSomebodyIsRefused(t *testing.T) {
	server := mariadb.Start(t)
	check := somebody(t, server, "prod", "sbtest1")
	server.Exec(t, "CREATE VIEW prod.t1 AS SELECT * FROM prod.sbtest1")
	spec := slapSpec(t, server)
	spec.Target.Database, spec.Target.AllowExistingDatabase = "prod", true
	mustFail(t, runSpec(t, spec), contract.ClassDatabaseNotOwned)
	check()
}

func TestBesideTheTablesOfSomebody(t *testing.T) {
	server := mariadb.Start(t)
	check := somebody(t, server, "prod", "sbtest1", "t2")
	spec := slapSpec(t, server)
	spec.Target.Database, spec.Target.AllowExistingDatabase = "prod", true
	mustSucceed(t, spec)
	check()
	if got := tables(t, server, "prod"); !slices.Equal(got, []string{"sbtest1", "t2"}) {
		t.Errorf("tables %v", got)
	}
}

// TestKilledHalfWay has the runner end in the middle of its load, in a database where
// somebody has tables. Theirs stay as they are; what the killed runner leaves behind is
// found by the next one, and by the clean-up.
func TestKilledHalfWay(t *testing.T) {
	server := mariadb.Start(t)
	for name, signal := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		for phase, preload := range map[string]int64{"Prepare": 100_000_000, "Measure": 100} {
			t.Run(name+" in "+phase, func(t *testing.T) {
				check := somebody(t, server, "prod", "sbtest1")
				defer server.Exec(t, "DROP DATABASE prod")
				spec := long(t, server)
				spec.Target.Database, spec.Target.AllowExistingDatabase = "prod", true
				spec.Workload.Slap.PreloadRows = preload
				p := start(t, spec)
				p.await(`"phase":"` + phase + `"`)
				time.Sleep(300 * time.Millisecond)
				if err := p.command.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				p.wait()
				check()
				want := []string{"sbtest1"}
				if signal == syscall.SIGKILL {
					want = []string{"sbtest1", "t1"}
				}
				if got := tables(t, server, "prod"); !slices.Equal(got, want) {
					t.Errorf("tables %v, want %v", got, want)
				}

				next := slapSpec(t, server)
				next.Target.Database, next.Target.AllowExistingDatabase = "prod", true
				next.Cleanup = contract.CleanupNever
				mustSucceed(t, next)
				check()
				if o := runSpec(t, next, "cleanup"); o.exit != exitOK {
					t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
				}
				check()
				if got := tables(t, server, "prod"); !slices.Equal(got, []string{"sbtest1"}) {
					t.Errorf("tables %v after the clean-up", got)
				}
			})
		}
	}
}

func TestTheDatabaseOfAnotherBenchmark(t *testing.T) {
	server := mariadb.Start(t)
	spec := slapSpec(t, server)
	spec.Cleanup = contract.CleanupNever
	mustSucceed(t, spec)

	other := slapSpec(t, server)
	other.Run.Benchmark, other.Run.BenchmarkUID = "other", "uid-2"
	mustFail(t, runSpec(t, other), contract.ClassDatabaseNotOwned)
	if o := runSpec(t, other, "cleanup"); o.exit != exitOK || !slices.Equal(tables(t, server, "dbbench"), []string{"t1"}) {
		t.Errorf("another benchmark's clean-up: exit code %d, tables %v", o.exit, tables(t, server, "dbbench"))
	}
	other.Target.AllowExistingDatabase = true
	mustFail(t, runSpec(t, other), contract.ClassDatabaseNotOwned) // for the sake of its t1

	// The same resource, deleted and made again.
	again := slapSpec(t, server)
	again.Run.BenchmarkUID = "uid-3"
	mustSucceed(t, again)
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

func TestWhatSomebodyPutsIntoOurDatabaseStays(t *testing.T) {
	server := mariadb.Start(t)
	spec := slapSpec(t, server)
	spec.Cleanup = contract.CleanupNever
	mustSucceed(t, spec)
	check := somebody(t, server, "dbbench", "notes")
	spec.Cleanup = contract.CleanupAlways
	r := mustSucceed(t, spec)
	check()
	if len(r.Result.Warnings) == 0 || !strings.Contains(r.Result.Warnings[0], "notes") {
		t.Errorf("warnings %v", r.Result.Warnings)
	}
	server.Exec(t, "DROP TABLE dbbench.notes", "CREATE PROCEDURE dbbench.p() SELECT 1")
	mustSucceed(t, spec)
	if rows := server.Rows(t, "SHOW PROCEDURE STATUS WHERE Db = 'dbbench'"); len(rows) != 1 {
		t.Error("somebody's procedure is gone")
	}
	server.Exec(t, "DROP PROCEDURE dbbench.p")
	if o := runSpec(t, spec, "cleanup"); o.exit != exitOK || len(server.Rows(t, "SHOW DATABASES LIKE 'dbbench'")) != 0 {
		t.Errorf("cleanup: exit code %d", o.exit)
	}
}

func TestCleanupPolicies(t *testing.T) {
	server := mariadb.Start(t)
	exists := func() bool { return len(server.Rows(t, "SHOW DATABASES LIKE 'dbbench'")) == 1 }
	for _, tt := range []struct {
		policy     contract.Cleanup
		fail, left bool
	}{
		{contract.CleanupAlways, false, false}, {contract.CleanupAlways, true, false},
		{contract.CleanupOnSuccess, false, false}, {contract.CleanupOnSuccess, true, true},
		{contract.CleanupNever, false, true}, {contract.CleanupNever, true, true},
	} {
		spec := slapSpec(t, server)
		spec.Cleanup = tt.policy
		if tt.fail {
			spec.Workload.Slap.CharColumns = 900 // more than a row holds
		}
		runSpec(t, spec)
		if exists() != tt.left {
			t.Errorf("%s after failure %v: the database is there: %v", tt.policy, tt.fail, exists())
		}
		for range 2 { // the second time there is nothing to do
			if o := runSpec(t, spec, "cleanup"); o.exit != exitOK || o.termination == nil || o.termination.Outcome != contract.OutcomeSucceeded {
				t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
			}
		}
		if exists() {
			t.Errorf("%s: the database is there after the clean-up", tt.policy)
		}
	}
	spec := slapSpec(t, server)
	spec.Target.PasswordFile = spec.Target.UsernameFile
	if o := runSpec(t, spec, "cleanup"); o.exit != exitFailed || o.termination.Failure.Class != contract.ClassAuthenticationFailed {
		t.Errorf("cleanup with a wrong password: exit code %d, %+v", o.exit, o.termination)
	}
}
