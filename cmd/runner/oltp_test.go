//go:build linux

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// oltpSpec is a run of a script as a resource without further options gives it, but
// for the number of rows.
func oltpSpec(t *testing.T, s *mariadb.Server, script string) contract.RunSpec {
	t.Helper()
	spec := slapSpec(t, s)
	spec.Workload = contract.Workload{OLTP: &contract.OLTP{
		Script: script, Compat: contract.Sysbench10, Tables: 2, TableSize: 1000, Engine: "InnoDB", AutoIncrement: true, CreateSecondary: true,
		PointSelects: 10, RangeSelects: true, RangeSize: 100, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1, RandomPoints: 10, NumberOfRanges: 10, Delta: 5,
		IgnoreErrors: []int32{1213, 1020, 1205}, Loaders: 3,
	}}
	if script == contract.OLTPRandomPoints || script == contract.OLTPRandomRanges {
		spec.Workload.OLTP.Tables = 1
	}
	spec.Load = contract.Load{Clients: 2, Events: 200}
	spec.Prepare, spec.Cleanup = contract.PreparePerDataset, contract.CleanupNever
	return spec
}

// queries are the statements that sysbench reports.
type queries struct{ read, write, other, events int64 }

// oltpCounters are what the server counts of a load.
var oltpCounters = []string{"Com_insert", "Com_select", "Com_update", "Com_delete", "Com_begin", "Com_commit", "Com_rollback",
	"Com_stmt_prepare", "Com_stmt_execute"}

// TestOLTPIsSysbench runs the tool and the runner with the same options on the same
// server. Both must count the same statements, the server must count the same, and the
// tables must be the same. One client draws without deadlocks; ids that a DELETE does
// not find move a statement from write to other.
func TestOLTPIsSysbench(t *testing.T) {
	tool, err := exec.LookPath("sysbench")
	if err != nil {
		t.Skipf("%v: install it with: apt-get install -y --no-install-recommends sysbench", err)
	}
	server := mariadb.Start(t)
	type change = func(*contract.OLTP)
	for _, tt := range []struct {
		name, script, args string
		contract           string
		change             change
	}{
		{"point select", "oltp_point_select", "", contract.OLTPPointSelect, nil},
		{"read only", "oltp_read_only", "", contract.OLTPReadOnly, nil},
		{"read only without ranges", "oltp_read_only", "--range-selects=off --point-selects=3", contract.OLTPReadOnly,
			func(o *contract.OLTP) { o.RangeSelects, o.PointSelects = false, 3 }},
		{"read write", "oltp_read_write", "", contract.OLTPReadWrite, nil},
		{"read write, other counts", "oltp_read_write",
			"--point-selects=2 --simple-ranges=3 --sum-ranges=0 --order-ranges=2 --distinct-ranges=2 --index-updates=3 --non-index-updates=2 --delete-inserts=2 --range-size=5",
			contract.OLTPReadWrite, func(o *contract.OLTP) {
				o.PointSelects, o.SimpleRanges, o.SumRanges, o.OrderRanges, o.DistinctRanges = 2, 3, 0, 2, 2
				o.IndexUpdates, o.NonIndexUpdates, o.DeleteInserts, o.RangeSize = 3, 2, 2, 5
			}},
		{"read write as text", "oltp_read_write", "--db-ps-mode=disable", contract.OLTPReadWrite,
			func(o *contract.OLTP) { o.Statements = contract.StatementsText }},
		{"read write without transactions", "oltp_read_write", "--skip-trx=on", contract.OLTPReadWrite,
			func(o *contract.OLTP) { o.SkipTransaction = true }},
		{"read write, MyISAM", "oltp_read_write", "--mysql-storage-engine=myisam", contract.OLTPReadWrite,
			func(o *contract.OLTP) { o.Engine = "MyISAM" }},
		{"read write, secondary key", "oltp_read_write", "--secondary=on --auto-inc=off --create-secondary=off", contract.OLTPReadWrite,
			func(o *contract.OLTP) { o.Secondary, o.AutoIncrement, o.CreateSecondary = true, false, false }},
		{"write only", "oltp_write_only", "", contract.OLTPWriteOnly, nil},
		{"update index", "oltp_update_index", "", contract.OLTPUpdateIndex, nil},
		{"update non index", "oltp_update_non_index", "", contract.OLTPUpdateNonIndex, nil},
		{"insert", "oltp_insert", "", contract.OLTPInsert, nil},
		{"insert with own ids", "oltp_insert", "--auto-inc=off", contract.OLTPInsert, func(o *contract.OLTP) { o.AutoIncrement = false }},
		{"delete", "oltp_delete", "", contract.OLTPDelete, nil},
		{"bulk insert", "bulk_insert", "", contract.OLTPBulkInsert, nil},
		{"random points", "select_random_points", "", contract.OLTPRandomPoints, nil},
		{"random ranges", "select_random_ranges", "--number-of-ranges=4 --delta=7", contract.OLTPRandomRanges,
			func(o *contract.OLTP) { o.NumberOfRanges, o.Delta = 4, 7 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const events = 300
			spec := oltpSpec(t, server, tt.contract)
			spec.Load = contract.Load{Clients: 1, Events: events}
			if tt.change != nil {
				tt.change(spec.Workload.OLTP)
			}
			o := spec.Workload.OLTP

			server.Exec(t, "CREATE DATABASE sbref")
			defer server.Exec(t, "DROP DATABASE sbref")
			args := []string{tt.script, "--mysql-user=root", "--mysql-socket=" + server.Socket, "--mysql-db=sbref",
				"--threads=1", "--time=0", "--events=" + strconv.Itoa(events)}
			if tt.contract != contract.OLTPBulkInsert {
				args = append(args, "--tables="+strconv.Itoa(int(o.Tables)), "--table-size="+strconv.FormatInt(o.TableSize, 10))
			}
			args = append(args, strings.Fields(tt.args)...)
			sysbench(t, tool, append(args, "prepare"))
			wantTables := oltpTables(t, server, "sbref")
			before := server.Status(t, oltpCounters...)
			want := reported(t, sysbench(t, tool, append(args, "run")))
			wantStatus := since(server.Status(t, oltpCounters...), before)

			r := mustSucceed(t, spec)
			checkCounts(t, r)
			gotTables := oltpTables(t, server, spec.Target.Database)
			if !maps.Equal(gotTables, wantTables) {
				t.Errorf("got tables\n%v\nwant\n%v", gotTables, wantTables)
			}
			got := queries{r.Result.Reads, r.Result.Writes, r.Result.Other, r.Result.Events}
			// What did not change a row is "other" to both of them; how often an id is hit that
			// is gone, or gets the value that it has, is chance.
			if got.read != want.read || got.write+got.other != want.write+want.other || got.events != want.events {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if tt.contract != contract.OLTPDelete && got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if gotStatus := ofLoad(r); !maps.Equal(gotStatus, wantStatus) {
				t.Errorf("the server counted\n     %v\nwant %v", gotStatus, wantStatus)
			}
			if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
				t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
			}
		})
	}
}

func sysbench(t *testing.T, tool string, args []string) string {
	t.Helper()
	out, err := exec.Command(tool, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("sysbench: %v\n%s", err, out)
	}
	return string(out)
}

var report = regexp.MustCompile(`(?s)read: +(\d+)\s+write: +(\d+)\s+other: +(\d+).*total number of events: +(\d+)`)

func reported(t *testing.T, out string) queries {
	t.Helper()
	m := report.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("sysbench reports\n%s", out)
	}
	var n [4]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // digits, as matched
	}
	return queries{n[0], n[1], n[2], n[3]}
}

// ofLoad are the counters of the record.
func ofLoad(r *contract.Record) map[string]int64 {
	out := map[string]int64{}
	for _, name := range oltpCounters {
		out[name] = r.Environment.StatusDeltas[name]
	}
	return out
}

// oltpTables are the definitions of the tables by name, without what is ours.
func oltpTables(t *testing.T, s *mariadb.Server, database string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range s.Rows(t, fmt.Sprintf("SHOW TABLES FROM `%s` LIKE 'sbtest%%'", database)) {
		text := s.Rows(t, fmt.Sprintf("SHOW CREATE TABLE `%s`.`%s`", database, r[0]))[0][1]
		out[r[0]] = ours.ReplaceAllString(text, "")
	}
	return out
}

// rowsOf is the number of rows and the bounds of their ids.
func rowsOf(t *testing.T, s *mariadb.Server, table string) string {
	t.Helper()
	return s.Rows(t, "SELECT CONCAT(COUNT(*), ' rows, ', MIN(id), ' to ', MAX(id)) FROM "+table)[0][0]
}

func TestOLTPPreparesTwentyStatements(t *testing.T) {
	server := mariadb.Start(t)
	spec := oltpSpec(t, server, contract.OLTPReadWrite)
	spec.Load = contract.Load{Clients: 3, EventsPerClient: 1}
	if got := mustSucceed(t, spec).Environment.StatusDeltas["Com_stmt_prepare"]; got != 3*20 {
		t.Errorf("3 clients prepared %d statements, want 60", got)
	}
	// The limit is seen before anything is loaded.
	server.Exec(t, "SET GLOBAL max_prepared_stmt_count = 59", "DROP DATABASE dbbench")
	f := mustFail(t, runSpec(t, spec), contract.ClassPreflightFailed)
	if !strings.Contains(f.Message, "60 prepared statements") {
		t.Errorf("failure %+v", f)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("a database was made")
	}
}

// TestOLTPRetriesDeadlocks has many clients meet on few rows. Each event succeeds in
// the end, and none is done by halves.
func TestOLTPRetriesDeadlocks(t *testing.T) {
	server := mariadb.Start(t, "--innodb-lock-wait-timeout=1")
	spec := oltpSpec(t, server, contract.OLTPWriteOnly)
	spec.Workload.OLTP.TableSize = 100
	spec.Load = contract.Load{Clients: 16, Events: 3000}
	r := mustSucceed(t, spec)
	checkCounts(t, r)
	if r.Result.Events != 3000 || r.Result.Retries == 0 || r.Result.Attempts != r.Result.Events+r.Result.Retries || r.Result.Errors != 0 {
		t.Errorf("result %+v, want 3000 events and some retries", r.Result)
	}
	d := r.Environment.StatusDeltas
	if d["Com_rollback"] != r.Result.Retries || d["Com_commit"] != 3000 {
		t.Errorf("%d ROLLBACKs for %d retries, %d COMMITs for 3000 events", d["Com_rollback"], r.Result.Retries, d["Com_commit"])
	}
	for _, table := range []string{"sbtest1", "sbtest2"} {
		if got := rowsOf(t, server, "dbbench."+table); got != "100 rows, 1 to 100" {
			t.Errorf("%s has %s after the run", table, got)
		}
	}
	t.Logf("%d retries", r.Result.Retries)

	spec.Workload.OLTP.NoRollbackOnRetry = true
	if r := mustSucceed(t, spec); r.Environment.StatusDeltas["Com_rollback"] != 0 || r.Result.Retries == 0 {
		t.Errorf("%d ROLLBACKs that were not asked for, %d retries", r.Environment.StatusDeltas["Com_rollback"], r.Result.Retries)
	}

	spec.Workload.OLTP.IgnoreErrors = nil
	o := runSpec(t, spec)
	if f := mustFail(t, o, contract.ClassWorkloadFailed); f.MySQLError != 1213 && f.MySQLError != 1205 {
		t.Errorf("failure %+v, want a deadlock", f)
	}
}

// TestOLTPGenerations runs every script of every generation, with several clients, and
// with the statements sent as each generation does and the other way.
func TestOLTPGenerations(t *testing.T) {
	server := mariadb.Start(t)
	for _, compat := range []string{contract.Sysbench05, contract.Sysbench10, contract.Sysbench11} {
		for _, script := range []string{contract.OLTPPointSelect, contract.OLTPReadOnly, contract.OLTPReadWrite, contract.OLTPWriteOnly,
			contract.OLTPUpdateIndex, contract.OLTPUpdateNonIndex, contract.OLTPInsert, contract.OLTPDelete, contract.OLTPBulkInsert,
			contract.OLTPRandomPoints, contract.OLTPRandomRanges} {
			for _, statements := range []string{"", contract.StatementsPrepared, contract.StatementsText} {
				if statements != "" && script != contract.OLTPReadWrite && script != contract.OLTPRandomPoints {
					continue
				}
				t.Run(strings.Join([]string{compat, script, statements}, " "), func(t *testing.T) {
					spec := oltpSpec(t, server, script)
					spec.Workload.OLTP.Compat, spec.Workload.OLTP.Statements = compat, statements
					r := mustSucceed(t, spec)
					checkCounts(t, r)
					if r.Result.Events != 200 || r.Result.Errors != 0 || len(r.Operations) != 1 {
						t.Errorf("result %+v, operations %d", r.Result, len(r.Operations))
					}
				})
			}
		}
	}
}

func TestOLTPLocksTablesWithoutTransactions(t *testing.T) {
	server := mariadb.Start(t)
	for _, engine := range []string{"MyISAM", "Aria", "MEMORY"} {
		spec := oltpSpec(t, server, contract.OLTPReadWrite)
		spec.Workload.OLTP.Compat, spec.Workload.OLTP.Engine = contract.Sysbench05, engine
		spec.Load.Clients = 4
		r := mustSucceed(t, spec)
		// 18 statements to the tables, and LOCK TABLES and UNLOCK TABLES.
		if got := [4]int64{r.Result.Reads, r.Result.Writes, r.Result.Other, r.Environment.StatusDeltas["Com_begin"]}; got != [4]int64{200 * 14, 200 * 4, 200 * 2, 0} {
			t.Errorf("%s: reads, writes, other, BEGIN: %v", engine, got)
		}
		text := oltpTables(t, server, "dbbench")["sbtest2"]
		if want := ") ENGINE=" + engine; !strings.Contains(text, want) || !strings.Contains(text, "MAX_ROWS=1000000") || !strings.Contains(text, "int(10) unsigned") {
			t.Errorf("table\n%s\nwant %s in it", text, want)
		}
	}
}

func TestOLTPReconnects(t *testing.T) {
	server := mariadb.Start(t)
	spec := oltpSpec(t, server, contract.OLTPReadWrite)
	spec.Workload.OLTP.ReconnectEvery = 10
	spec.Load = contract.Load{Clients: 2, EventsPerClient: 100}
	r := mustSucceed(t, spec)
	if r.Result.Reconnects != 20 || r.Environment.StatusDeltas["Com_stmt_prepare"] != 22*20 {
		t.Errorf("%d reconnects, %d statements prepared", r.Result.Reconnects, r.Environment.StatusDeltas["Com_stmt_prepare"])
	}
}

// TestOLTPLosesConnections kills the clients' connections: with the number by which the
// C library says so in the list the run goes on.
func TestOLTPLosesConnections(t *testing.T) {
	server := mariadb.Start(t)
	kill := func() (killed int) {
		for _, r := range server.Rows(t, "SELECT id FROM information_schema.processlist WHERE user = '"+mariadb.User+"' AND db = 'dbbench'") {
			if _, err := server.Root.Exec("KILL " + r[0]); err == nil {
				killed++
			}
		}
		return killed
	}
	spec := oltpSpec(t, server, contract.OLTPReadWrite)
	spec.Workload.OLTP.IgnoreErrors = append(spec.Workload.OLTP.IgnoreErrors, 2013)
	spec.Load = contract.Load{Clients: 4, Duration: seconds(3)}
	p := start(t, spec)
	p.await(measuring)
	time.Sleep(time.Second)
	killed := kill()
	o := p.wait()
	if o.exit != exitOK || o.record.Result.Reconnects == 0 || o.record.Result.Reconnects > int64(killed) {
		t.Fatalf("exit code %d, %d of %d connections opened again: %+v", o.exit, o.record.Result.Reconnects, killed, o.record.Result)
	}
	if got := rowsOf(t, server, "dbbench.sbtest1"); got != "1000 rows, 1 to 1000" {
		t.Errorf("sbtest1 has %s", got)
	}

	spec.Workload.OLTP.IgnoreErrors = []int32{1213}
	p = start(t, spec)
	p.await(measuring)
	time.Sleep(500 * time.Millisecond)
	kill()
	if f := mustFail(t, p.wait(), contract.ClassTargetUnreachable); f.MySQLError != 0 {
		t.Errorf("failure %+v, want a lost connection", f)
	}
}

// inserts is how many INSERTs a run needs: none where it finds its data.
func inserts(t *testing.T, server *mariadb.Server, spec contract.RunSpec) int64 {
	t.Helper()
	before := server.Status(t, "Com_insert")["Com_insert"]
	mustSucceed(t, spec)
	return server.Status(t, "Com_insert")["Com_insert"] - before
}

func TestOLTPDatasetIsShared(t *testing.T) {
	server := mariadb.Start(t)
	spec := oltpSpec(t, server, contract.OLTPReadOnly)
	spec.Load.Events = 10
	seed := int64(3)
	spec.Workload.OLTP.Seed = &seed
	if inserts(t, server, spec) == 0 {
		t.Error("nothing was loaded")
	}
	first := checksum(t, server, "dbbench.sbtest1, dbbench.sbtest2")
	for name, change := range map[string]func(){
		"the same": func() {},
		"options that leave the data alone": func() {
			spec.Workload.OLTP.Script, spec.Workload.OLTP.PointSelects, spec.Workload.OLTP.Loaders = contract.OLTPPointSelect, 3, 1
		},
		"another generation with the same tables": func() {
			spec.Workload.OLTP.Compat = contract.Sysbench11
			spec.Workload.OLTP.Distribution = &contract.Distribution{Type: contract.DistributionSpecial, Iterations: 12, SpecialPercent: 1,
				SpecialShare: 75, ParetoH: "0.2", ZipfianExponent: "0.8"}
		},
	} {
		before := *spec.Workload.OLTP
		change()
		if n := inserts(t, server, spec); n != 0 {
			t.Errorf("%s: %d INSERTs", name, n)
		}
		*spec.Workload.OLTP = before
	}
	spec.Workload.OLTP.TableSize = 500
	if inserts(t, server, spec) == 0 {
		t.Error("data of another size was taken")
	}
	spec.Workload.OLTP.TableSize = 1000
	if inserts(t, server, spec) == 0 || checksum(t, server, "dbbench.sbtest1, dbbench.sbtest2") != first {
		t.Error("a seed does not decide what the data is")
	}
	server.Exec(t, "DELETE FROM dbbench.sbtest2 WHERE id = 500")
	if inserts(t, server, spec) == 0 || rowsOf(t, server, "dbbench.sbtest2") != "1000 rows, 1 to 1000" {
		t.Error("damaged data was taken")
	}
	spec.Prepare = contract.PrepareNever
	if n := inserts(t, server, spec); n != 0 {
		t.Errorf("never: %d INSERTs", n)
	}
	server.Exec(t, "DELETE FROM dbbench.sbtest2 WHERE id = 1000")
	if f := mustFail(t, runSpec(t, spec), contract.ClassPrepareFailed); !strings.Contains(f.Message, "sbtest2 has 999 rows") {
		t.Errorf("failure %+v", f)
	}
	spec.Prepare = contract.PreparePerRun
	if inserts(t, server, spec) == 0 {
		t.Error("per run: nothing was loaded")
	}
}

// TestOLTPLoadIsResumed kills the runner in the middle of its load: the next one loads
// what is missing, also where the engine left half a part behind.
func TestOLTPLoadIsResumed(t *testing.T) {
	for _, engine := range []string{"InnoDB", "MyISAM"} {
		t.Run(engine, func(t *testing.T) {
			server := mariadb.Start(t)
			spec := oltpSpec(t, server, contract.OLTPPointSelect)
			spec.Workload.OLTP.TableSize, spec.Workload.OLTP.Engine, spec.Workload.OLTP.Loaders = 120_000, engine, 2
			spec.Load.Events = 10
			parts := func() int {
				rows, err := server.Root.Query("SELECT part FROM dbbench._dbbench_dataset WHERE step = 1")
				if err != nil {
					return 0 // not made yet
				}
				defer rows.Close()
				n := 0
				for rows.Next() {
					n++
				}
				return n
			}
			const all = 2 * 120_000 / 20_000
			p := start(t, spec)
			for deadline := time.Now().Add(60 * time.Second); parts() < 3 && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if err := p.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = p.command.Wait() // killed
			// The server ends what it was doing.
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if len(server.Rows(t, "SELECT id FROM information_schema.processlist WHERE user = '"+mariadb.User+"'")) == 0 {
					break
				}
			}
			done := parts()
			if done < 3 || done >= all {
				t.Fatalf("%d of %d parts were loaded when the runner was killed", done, all)
			}
			before := server.Status(t, "Com_insert")["Com_insert"]
			mustSucceed(t, spec)
			// A part takes some INSERTs of 512 KiB, and one to note it.
			perPart := int64(4_000_000/(512<<10)+1) + 1
			if n := server.Status(t, "Com_insert")["Com_insert"] - before; n > int64(all-done)*perPart+2 {
				t.Errorf("%d INSERTs for the %d parts that were missing", n, all-done)
			}
			for _, table := range []string{"sbtest1", "sbtest2"} {
				if got := rowsOf(t, server, "dbbench."+table); got != "120000 rows, 1 to 120000" {
					t.Errorf("%s has %s", table, got)
				}
				if text := oltpTables(t, server, "dbbench")[table]; !strings.Contains(text, "KEY `k_") {
					t.Errorf("%s has no index:\n%s", table, text)
				}
			}
		})
	}
}

func TestOLTPBigIntIDs(t *testing.T) {
	server := mariadb.Start(t)
	spec := oltpSpec(t, server, contract.OLTPReadWrite)
	spec.Workload.OLTP.BigIntIDs = true
	mustSucceed(t, spec)
	if text := oltpTables(t, server, "dbbench")["sbtest1"]; !strings.Contains(text, "`id` bigint(20) NOT NULL AUTO_INCREMENT") {
		t.Errorf("table\n%s", text)
	}
}
