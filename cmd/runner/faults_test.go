//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// fault is something that goes wrong on a server in the middle of a load.
type fault func(t *testing.T, s *mariadb.Server)

func readOnly(t *testing.T, s *mariadb.Server) { s.Exec(t, "SET GLOBAL read_only = 1") }

// killed ends the connections of all clients.
func killed(t *testing.T, s *mariadb.Server) {
	for _, r := range s.Rows(t, "SELECT id FROM information_schema.processlist WHERE user = '"+mariadb.User+"' AND db = 'dbbench'") {
		_, _ = s.Root.Exec("KILL " + r[0]) // it may be gone with its client's other one
	}
}

// locked holds all rows of a table for longer than the clients wait.
func locked(table string) fault {
	return func(t *testing.T, s *mariadb.Server) {
		tx, err := s.Root.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query("SELECT 1 FROM dbbench." + table + " FOR UPDATE")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// sqlUpdates is a workload of the user's own that meets locks, and repeats what they fail.
func sqlUpdates(t *testing.T, s *mariadb.Server, retry ...int32) contract.RunSpec {
	spec := sqlSpec(t, s)
	q := spec.Workload.SQL
	q.Setup = "CREATE TABLE counters (id INT PRIMARY KEY, n INT) ENGINE = InnoDB; INSERT INTO counters VALUES (1, 0), (2, 0)"
	q.Pre, q.Post, q.Cleanup, q.RetryErrors = "", "", "", retry
	q.Parameters = []contract.SQLParameter{{Name: "id", Type: contract.ParameterUniform, Min: 1, Max: 2}}
	q.Statements = []contract.SQLStatement{{Name: "update", Transaction: true, Weight: 1,
		SQL: "UPDATE counters SET n = n + :id WHERE id = 1; UPDATE counters SET n = n + 1 WHERE id = 2"}}
	return spec
}

// TestFaults has each workload meet each class of error, as the server gives them, and
// holds what becomes of the run against what the tool that it stands for does: what it
// tries again is counted and is no error, all else fails the run, with a hint.
func TestFaults(t *testing.T) {
	const (
		readOnlyNumber = 1290
		lockWait       = 1205
	)
	for _, tt := range []struct {
		name  string
		spec  func(*testing.T, *mariadb.Server) contract.RunSpec
		fault fault
		class contract.Class // "" succeeds
		// number is that of the failure; of a run that succeeds, of what was tried again or,
		// where skipped is set, passed over.
		number  uint16
		skipped bool
	}{
		{name: "slap: read-only", spec: slapOf(contract.SlapWrite), fault: readOnly, class: contract.ClassPreflightFailed, number: readOnlyNumber},
		{name: "slap: killed", spec: slapOf(contract.SlapWrite), fault: killed, class: contract.ClassTargetUnreachable},
		{name: "slap: lock wait", spec: slapOf(contract.SlapUpdate), fault: locked("t1"), class: contract.ClassWorkloadFailed, number: lockWait},
		{name: "oltp: read-only", spec: oltpOf(contract.OLTPReadWrite), fault: readOnly, class: contract.ClassPreflightFailed, number: readOnlyNumber},
		{name: "oltp: killed", spec: oltpOf(contract.OLTPReadWrite), fault: killed, class: contract.ClassTargetUnreachable},
		{name: "oltp: killed, and 2013 ignored", spec: oltpOf(contract.OLTPReadWrite, 2013), fault: killed},
		{name: "oltp: lock wait", spec: oltpOf(contract.OLTPUpdateIndex), fault: locked("sbtest1"), number: lockWait},
		{name: "oltp: lock wait in a transaction", spec: oltpOf(contract.OLTPWriteOnly), fault: locked("sbtest1"), number: lockWait},
		{name: "linkbench: lock wait", spec: linkBenchSpec, fault: locked("counttable"), number: lockWait},
		{name: "linkbench: killed", spec: linkBenchSpec, fault: killed, skipped: true},
		{name: "linkbench: read-only", spec: linkBenchSpec, fault: readOnly, class: contract.ClassWorkloadFailed, number: readOnlyNumber},
		{name: "payload: read-only", spec: payloadOf, fault: readOnly, class: contract.ClassPreflightFailed, number: readOnlyNumber},
		{name: "payload: killed", spec: payloadOf, fault: killed, class: contract.ClassTargetUnreachable},
		{name: "payload: lock wait", spec: payloadOf, fault: locked("bench"), number: lockWait},
		{name: "sql: read-only", spec: sqlOf(1213, lockWait), fault: readOnly, class: contract.ClassPreflightFailed, number: readOnlyNumber},
		{name: "sql: killed", spec: sqlOf(1213), fault: killed, class: contract.ClassTargetUnreachable},
		{name: "sql: lock wait that is to be tried again", spec: sqlOf(1213, lockWait), fault: locked("counters"), number: lockWait},
		{name: "sql: lock wait that is not", spec: sqlOf(1213), fault: locked("counters"), class: contract.ClassWorkloadFailed, number: lockWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := mariadb.Start(t, "--innodb-lock-wait-timeout=1")
			server.Exec(t, "REVOKE READ ONLY ADMIN ON *.* FROM "+mariadb.User)
			spec := tt.spec(t, server)
			spec.Load = contract.Load{Clients: 3, Duration: seconds(4)}
			spec.Cleanup = contract.CleanupNever // which a server that is read-only would not let happen
			p := start(t, spec)
			p.await(measuring)
			time.Sleep(500 * time.Millisecond)
			tt.fault(t, server)
			o := p.wait()
			if tt.class != "" {
				f := mustFail(t, o, tt.class)
				r := o.record.Result
				if f.MySQLError != tt.number || r.Errors == 0 || r.ErrorsByNumber[tt.number] == 0 || r.Events == 0 {
					t.Errorf("failure %+v, %d events, %d errors %v", f, r.Events, r.Errors, r.ErrorsByNumber)
				}
				return
			}
			if o.exit != exitOK || o.recordErr != nil {
				t.Fatalf("exit code %d, record %v\n%s\n%s", o.exit, o.recordErr, tail(o.stdout), o.stderr)
			}
			checkFault(t, o.record.Result, tt.number, tt.skipped)
		})
	}
}

// checkFault looks at a run that lived through a fault.
func checkFault(t *testing.T, r contract.Result, number uint16, skipped bool) {
	t.Helper()
	var retries int64
	for _, n := range r.RetriesByNumber {
		retries += n
	}
	switch {
	case retries != r.Retries || r.Attempts != r.Events+r.Errors+r.Retries:
		t.Errorf("the counts do not add up: %+v", r)
	case skipped:
		if r.Errors == 0 || r.ErrorsByNumber[number] != r.Errors || r.Reconnects == 0 {
			t.Errorf("%d errors %v, %d reconnects", r.Errors, r.ErrorsByNumber, r.Reconnects)
		}
	case r.Errors != 0 || r.RetriesByNumber[number] == 0:
		t.Errorf("%d errors %v, tried again %v", r.Errors, r.ErrorsByNumber, r.RetriesByNumber)
	}
}

func slapOf(loadType string) func(*testing.T, *mariadb.Server) contract.RunSpec {
	return func(t *testing.T, s *mariadb.Server) contract.RunSpec {
		spec := slapSpec(t, s)
		spec.Workload = slapWorkload(loadType)
		return spec
	}
}

func oltpOf(script string, ignored ...int32) func(*testing.T, *mariadb.Server) contract.RunSpec {
	return func(t *testing.T, s *mariadb.Server) contract.RunSpec {
		spec := oltpSpec(t, s, script)
		spec.Workload.OLTP.Tables = 1
		spec.Workload.OLTP.IgnoreErrors = append(spec.Workload.OLTP.IgnoreErrors, ignored...)
		return spec
	}
}

func payloadOf(t *testing.T, s *mariadb.Server) contract.RunSpec {
	return payloadSpec(t, s, contract.PayloadUpdate)
}

func sqlOf(retry ...int32) func(*testing.T, *mariadb.Server) contract.RunSpec {
	return func(t *testing.T, s *mariadb.Server) contract.RunSpec { return sqlUpdates(t, s, retry...) }
}

// TestDuplicateKeys: two rows with one value fail the run of every workload that could
// meet them, with the number and a hint.
func TestDuplicateKeys(t *testing.T) {
	server := mariadb.Start(t)
	q := sqlUpdates(t, server)
	q.Workload.SQL.Statements = []contract.SQLStatement{{Name: "insert", Weight: 1, SQL: "INSERT INTO counters VALUES (7, 7)"}}
	q.Load = contract.Load{Clients: 1, Events: 5}
	o := runSpec(t, q)
	f := mustFail(t, o, contract.ClassWorkloadFailed)
	if f.MySQLError != 1062 || o.record.Result.Events != 1 || o.record.Result.ErrorsByNumber[1062] != 1 {
		t.Errorf("failure %+v, %+v", f, o.record.Result)
	}
}

// TestNothingSucceeded: a run without one event that succeeded has failed, whatever is
// passed over.
func TestNothingSucceeded(t *testing.T) {
	server := mariadb.Start(t)
	spec := linkBenchSpec(t, server)
	spec.Workload.LinkBench.MaxFailedRequests = -1
	spec.Load = contract.Load{Clients: 2, Duration: seconds(2), Warmup: seconds(1)}
	p := start(t, spec)
	p.await(`"phase":"Warmup"`)
	server.Exec(t, "SET FOREIGN_KEY_CHECKS = 0", "DROP TABLE dbbench.linktable, dbbench.counttable, dbbench.nodetable")
	o := p.wait()
	f := mustFail(t, o, contract.ClassWorkloadFailed)
	if !strings.Contains(f.Message, "not one event succeeded") || o.record.Result.Events != 0 || o.record.Result.Errors == 0 {
		t.Errorf("failure %+v, %s", f, fmt.Sprint(o.record.Result))
	}
}
