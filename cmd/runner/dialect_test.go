//go:build linux

package main

import (
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// TestDialectWorkloads runs every workload on every server, as it is installed and with
// what a server's owner may have set: SQL modes that change how texts are quoted, and
// other character sets.
func TestDialectWorkloads(t *testing.T) {
	for _, name := range []string{mariadb.MySQL9, mariadb.MariaDB1011, mariadb.MariaDB118} {
		t.Run(name, func(t *testing.T) {
			server := mariadb.StartUnpacked(t, name)
			for _, setting := range []struct{ name, mode, charset string }{
				{"as installed", "", ""},
				{"ANSI", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,STRICT_ALL_TABLES", "latin1"},
				{"utf8mb4", "NO_BACKSLASH_ESCAPES", "utf8mb4"},
			} {
				if setting.mode != "" {
					server.Exec(t, "SET GLOBAL sql_mode = '"+setting.mode+"'", "SET GLOBAL character_set_server = "+setting.charset)
				}
				for workload, spec := range everyWorkload(t, server) {
					t.Run(setting.name+" "+workload, func(t *testing.T) {
						r := mustSucceed(t, spec)
						checkCounts(t, r)
						if want := map[bool]string{true: "MySQL", false: "MariaDB"}[name == mariadb.MySQL9]; r.Environment.ServerFlavor != want {
							t.Errorf("flavour %s", r.Environment.ServerFlavor)
						}
						if n := len(r.Environment.ServerVariables); n < 90 {
							t.Errorf("%d variables on record", n)
						}
						if left := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(left) != 0 {
							t.Error("the database is still there")
						}
					})
				}
			}
		})
	}
}

// everyWorkload is a small run of each, with all statements that it knows.
func everyWorkload(t *testing.T, server *mariadb.Server) map[string]contract.RunSpec {
	small := func(spec contract.RunSpec, load contract.Load) contract.RunSpec {
		spec.Load, spec.Prepare, spec.Cleanup = load, contract.PreparePerRun, contract.CleanupAlways
		return spec
	}
	slap := slapSpec(t, server)
	slap.Workload.Slap.Engine, slap.Workload.Slap.AutoIncrement, slap.Workload.Slap.SecondaryIndexes = "InnoDB", true, 1
	old := oltpSpec(t, server, contract.OLTPReadWrite)
	old.Workload.OLTP.Compat, old.Workload.OLTP.Statements = contract.Sysbench05, contract.StatementsText
	sql := sqlSpec(t, server)
	sql.Workload.SQL.Setup = "CREATE TABLE parent (id INT PRIMARY KEY, name TEXT); INSERT INTO parent VALUES (1, 'one'), (2, 'it''s')"
	sql.Workload.SQL.Cleanup = ""
	sql.Workload.SQL.Statements = []contract.SQLStatement{
		{Name: "read", SQL: "SELECT name FROM parent WHERE id = :id", Weight: 1},
		{Name: "order", Transaction: true, Weight: 1, SQL: "SELECT id FROM parent WHERE id = :id FOR UPDATE; UPDATE parent SET name = :word WHERE id = :id"},
	}
	sql.Workload.SQL.Parameters = []contract.SQLParameter{
		{Name: "id", Type: contract.ParameterUniform, Min: 1, Max: 2}, {Name: "word", Type: contract.ParameterList, Values: []string{"t'wo", `b\`, "ü€"}},
	}
	return map[string]contract.RunSpec{
		"slap":              small(slap, contract.Load{Clients: 2, EventsPerClient: 50}),
		"oltp":              small(oltpSpec(t, server, contract.OLTPReadWrite), contract.Load{Clients: 2, Events: 50}),
		"oltp sysbench-0.5": small(old, contract.Load{Clients: 2, Events: 50}),
		"linkbench":         small(linkBenchSpec(t, server), contract.Load{Clients: 2, Events: 200}),
		"payload":           small(payloadSpec(t, server, contract.PayloadUpdate), contract.Load{Clients: 2}),
		"sql":               small(sql, contract.Load{Clients: 2, Events: 50}),
	}
}

// TestDialectSocketRun: outside of a cluster a server may listen on a socket alone.
func TestDialectSocketRun(t *testing.T) {
	for _, name := range []string{mariadb.MySQL9, mariadb.MariaDB118} {
		t.Run(name, func(t *testing.T) {
			server := mariadb.StartUnpacked(t, name, "--skip-networking")
			spec := slapSpec(t, server)
			spec.Target.Host, spec.Target.Port, spec.Target.Socket = "", 0, server.Socket
			if r := mustSucceed(t, spec).Result; r.Events != 11 {
				t.Errorf("%d events", r.Events)
			}
		})
	}
}

// TestDialectDisabledEngine: preflight says which variable of the server forbids it.
func TestDialectDisabledEngine(t *testing.T) {
	server := mariadb.StartUnpacked(t, mariadb.MySQL9, "--disabled-storage-engines=MyISAM")
	spec := slapSpec(t, server)
	spec.Workload.Slap.Engine = "MyISAM"
	f := mustFail(t, runSpec(t, spec), contract.ClassPreflightFailed)
	if !strings.Contains(f.Message, "spec.workload.slap.engine") || !strings.Contains(f.Message, "disabled_storage_engines") {
		t.Errorf("got %+v", f)
	}
}
