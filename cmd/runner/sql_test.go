//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

const sqlSetup = `-- the tables; with a procedure that has delimiters of its own
CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(64) NOT NULL);
CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT NOT NULL, note TEXT, FOREIGN KEY (parent) REFERENCES parent (id));
INSERT INTO parent SELECT seq, CONCAT('name; ', seq) FROM seq_1_to_100;
DELIMITER //
CREATE PROCEDURE touch(n INT) BEGIN UPDATE parent SET name = CONCAT(name, '.') WHERE id = n; SELECT name FROM parent WHERE id = n; END//
DELIMITER ;
CREATE VIEW names AS SELECT name FROM parent;
`

func sqlSpec(t *testing.T, s *mariadb.Server) contract.RunSpec {
	t.Helper()
	seed := int64(1)
	spec := slapSpec(t, s)
	spec.Workload = contract.Workload{SQL: &contract.SQL{
		Setup: sqlSetup, Order: contract.OrderWeighted, Seed: &seed,
		Pre: "CREATE TABLE log (what TEXT); INSERT INTO log VALUES ('pre')", Post: "INSERT INTO log VALUES ('post')",
		Cleanup: "DROP VIEW IF EXISTS names; DROP PROCEDURE IF EXISTS touch",
		Statements: []contract.SQLStatement{
			{Name: "read", SQL: "SELECT name FROM parent WHERE id = :id", Weight: 70},
			{Name: "none", SQL: "SELECT name FROM parent WHERE id = -1", Weight: 5},
			{Name: "write", SQL: "UPDATE parent SET name = :text WHERE id = :id OR id = :id + 0", Weight: 10},
			{Name: "order", Transaction: true, Weight: 10,
				SQL: "SELECT id FROM parent WHERE id = :hot FOR UPDATE; INSERT INTO child (parent, note) VALUES (:hot, ':hot'); INSERT INTO child (parent, note) VALUES (:hot, :word) RETURNING id"},
			{Name: "call", SQL: "CALL touch(:id)", Weight: 5},
			{Name: "never", SQL: "DELETE FROM parent", Weight: 0},
		},
		Parameters: []contract.SQLParameter{
			{Name: "id", Type: contract.ParameterUniform, Min: 1, Max: 100}, {Name: "hot", Type: contract.ParameterZipfian, Min: 1, Max: 100},
			{Name: "text", Type: contract.ParameterString, Min: 3, Max: 10}, {Name: "word", Type: contract.ParameterList, Values: []string{"one", "t'wo"}},
		},
		RetryErrors: []int32{1213, 1020},
	}}
	spec.Load = contract.Load{Clients: 4, Events: 2000}
	return spec
}

func TestSQL(t *testing.T) {
	server := mariadb.Start(t)
	spec := sqlSpec(t, server)
	spec.Cleanup = contract.CleanupNever
	for range 2 { // the second one finds the tables of the first
		r := mustSucceed(t, spec)
		checkCounts(t, r)
		got := counts(r)
		if r.Result.Events != 2000 || got["never"] != 0 {
			t.Errorf("%d events, %v", r.Result.Events, got)
		}
		for name, share := range map[string]int64{"read": 70, "none": 5, "write": 10, "order": 10, "call": 5} {
			if n := got[name]; n < share*10 || n > share*35 { // of share*20
				t.Errorf("%s: %d of 2000, its share is %d %%", name, n, share)
			}
		}
		rows := server.Rows(t, "SELECT COUNT(*), SUM(note = ':hot'), SUM(note IN ('one', 't''wo')) FROM dbbench.child")
		if want := fmt.Sprint([]int64{2 * got["order"], got["order"], got["order"]}); fmt.Sprint(rows[0]) != want {
			t.Errorf("children %v, want %s", rows[0], want)
		}
		if rows := server.Rows(t, "SELECT GROUP_CONCAT(what ORDER BY what DESC) FROM dbbench.log"); rows[0][0] != "pre,post" {
			t.Errorf("pre and post wrote %v", rows)
		}
		server.Exec(t, "DROP VIEW dbbench.names", "DROP PROCEDURE dbbench.touch")
	}
	hot := server.Rows(t, "SELECT COUNT(*) FROM dbbench.child WHERE parent <= 10")[0][0]
	all := server.Rows(t, "SELECT COUNT(*) FROM dbbench.child")[0][0]
	t.Logf("%s of %s draws among the first 10 of 100", hot, all)

	spec.Cleanup = contract.CleanupAlways
	if r := mustSucceed(t, spec); len(r.Result.Warnings) != 0 {
		t.Errorf("warnings %v", r.Result.Warnings)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

// TestSQLCleansUpAfterAKill: what setup has made goes with the resource.
func TestSQLCleansUpAfterAKill(t *testing.T) {
	server := mariadb.Start(t)
	spec := sqlSpec(t, server)
	spec.Load = contract.Load{Clients: 2, Duration: seconds(60)}
	p := start(t, spec)
	p.await(measuring)
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait()
	for range 2 { // once is enough, and twice does no harm
		if o := runSpec(t, spec, "cleanup"); o.exit != exitOK {
			t.Errorf("exit code %d: %s", o.exit, o.stderr)
		}
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

// TestSQLTouchesNothingElse: in a database that exists only what setup made is dropped.
func TestSQLTouchesNothingElse(t *testing.T) {
	server := mariadb.Start(t)
	server.Exec(t, "CREATE DATABASE dbbench", "CREATE TABLE dbbench.theirs (id INT)", "INSERT INTO dbbench.theirs VALUES (42)")
	spec := sqlSpec(t, server)
	mustFail(t, runSpec(t, spec), contract.ClassDatabaseNotOwned)
	spec.Target.AllowExistingDatabase = true
	mustSucceed(t, spec)
	if rows := server.Rows(t, "SHOW TABLES FROM dbbench"); fmt.Sprint(rows) != "[[theirs]]" {
		t.Errorf("tables %v", rows)
	}
	if rows := server.Rows(t, "SELECT id FROM dbbench.theirs"); fmt.Sprint(rows) != "[[42]]" {
		t.Errorf("rows %v", rows)
	}
}

func TestSQLPerDatasetSetsUpOnce(t *testing.T) {
	server := mariadb.Start(t)
	spec := sqlSpec(t, server)
	spec.Prepare, spec.Cleanup = contract.PreparePerDataset, contract.CleanupNever
	spec.Workload.SQL.Pre, spec.Workload.SQL.Post = "", ""
	children := func() string { return server.Rows(t, "SELECT COUNT(*) FROM dbbench.child")[0][0] }
	mustSucceed(t, spec)
	first := children()
	mustSucceed(t, spec)
	second := children()
	if first == "0" || len(second) < len(first) || first == second {
		t.Errorf("%s children, then %s", first, second)
	}
	server.Exec(t, "DROP VIEW dbbench.names", "DROP PROCEDURE dbbench.touch")
	spec.Workload.SQL.Setup += "INSERT INTO child (parent, note) VALUES (1, 'another setup');"
	mustSucceed(t, spec)
	if rows := server.Rows(t, "SELECT id FROM dbbench.child WHERE note = 'another setup'"); fmt.Sprint(rows) != "[[1]]" {
		t.Errorf("another setup: %v", rows)
	}
	spec.Prepare = contract.PrepareNever
	mustSucceed(t, spec)
}

func TestSQLFromAFile(t *testing.T) {
	server := mariadb.Start(t)
	path := filepath.Join(t.TempDir(), "statements.sql")
	text := `-- each statement is an event
INSERT INTO parent VALUES (:n, 'it''s; new');
SELECT name FROM parent WHERE id = :n; # by key
START TRANSACTION;
UPDATE parent SET name = '' WHERE id = :n;
DELETE FROM parent WHERE id = :n;
COMMIT;
LOCK TABLES parent READ;
UNLOCK TABLES`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := sqlSpec(t, server)
	q := spec.Workload.SQL
	q.Statements, q.StatementsFile, q.Order = nil, path, contract.OrderSequential
	q.Parameters = []contract.SQLParameter{{Name: "n", Type: contract.ParameterUniform, Min: 1000, Max: 1 << 20}}
	// A value per event: the statements of the file do not share theirs.
	spec.Load = contract.Load{Clients: 1}
	r := mustSucceed(t, spec)
	if got, want := fmt.Sprint(counts(r)), "map[insert:1 lock:1 select:1 transaction:1 unlock:1]"; got != want {
		t.Errorf("operations %s, want %s", got, want)
	}
	if d := r.Environment.StatusDeltas; d["Com_begin"] != 1 || d["Com_commit"] != 1 || d["Com_insert"] != 1 {
		t.Errorf("status deltas %v", d)
	}
}

func TestSQLModesOfTheServer(t *testing.T) {
	server := mariadb.Start(t, "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES")
	spec := sqlSpec(t, server)
	q := spec.Workload.SQL
	q.Setup = `CREATE TABLE "a;\" (c TEXT); INSERT INTO "a;\" VALUES ('\'); INSERT INTO "a;\" VALUES (';')`
	q.Pre, q.Post, q.Cleanup = "", "", ""
	q.Statements = []contract.SQLStatement{{Name: "one", SQL: `SELECT c, '\' FROM "a;\" WHERE c = '\'`, Weight: 1}}
	spec.Cleanup = contract.CleanupNever
	mustSucceed(t, spec)
	if rows := server.Rows(t, "SELECT c FROM dbbench.`a;\\`"); fmt.Sprint(rows) != `[[\] [;]]` {
		t.Errorf("rows %v", rows)
	}
}

func TestSQLFailures(t *testing.T) {
	server := mariadb.Start(t)
	for _, tt := range []struct {
		name, want string
		class      contract.Class
		change     func(*contract.SQL)
	}{
		{"text that is not closed", "line 2", contract.ClassInvalidRunSpec, func(q *contract.SQL) { q.Setup = "SELECT 1;\nSELECT 'a" }},
		{"several statements", "transaction: true", contract.ClassInvalidRunSpec, func(q *contract.SQL) { q.Statements[0].SQL = "SELECT 1; SELECT 2" }},
		{"unknown parameter", ":nobody", contract.ClassInvalidRunSpec, func(q *contract.SQL) { q.Statements[0].SQL = "SELECT :nobody" }},
		{"question mark", "statements[0] (read)", contract.ClassInvalidRunSpec, func(q *contract.SQL) { q.Statements[0].SQL = "SELECT ?" }},
		{"no file", "statementsFile", contract.ClassInvalidRunSpec, func(q *contract.SQL) { q.Statements, q.StatementsFile = nil, "/nowhere/s.sql" }},
		{"setup fails", "setup, line 2", contract.ClassPrepareFailed, func(q *contract.SQL) { q.Setup = "SELECT 1;\nCREATE TABLE t (id NOSUCHTYPE)" }},
		{"statement that does not prepare", "prepare a statement of read", contract.ClassWorkloadFailed, func(q *contract.SQL) { q.Statements[0].SQL = "SELECT 1 FROM nosuchtable" }},
		{"statement that fails", "uplicate", contract.ClassWorkloadFailed, func(q *contract.SQL) { q.Statements[0].SQL = "INSERT INTO parent VALUES (1, '')" }},
		{"post fails", "post, line 1", contract.ClassVerifyFailed, func(q *contract.SQL) { q.Post = "SELEKT 1" }},
		{"cleanup fails", "cleanup, line 1", contract.ClassCleanupFailed, func(q *contract.SQL) { q.Cleanup = "DROP TABLE nosuchtable" }},
	} {
		spec := sqlSpec(t, server)
		tt.change(spec.Workload.SQL)
		o := runSpec(t, spec)
		f := mustFailWithoutHint(t, o, tt.class)
		if !strings.Contains(f.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.name, f, tt.want)
		}
		server.Exec(t, "DROP DATABASE IF EXISTS dbbench") // views and procedures that a cleanup did not reach
	}
}

// TestSQLRetries: a deadlock of two clients ends neither, and no half of a transaction
// stays.
func TestSQLRetries(t *testing.T) {
	server := mariadb.Start(t)
	spec := sqlSpec(t, server)
	q := spec.Workload.SQL
	q.Setup = "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL); INSERT INTO t VALUES (1, 0), (2, 0)"
	q.Pre, q.Post, q.Cleanup = "", "", ""
	q.Statements = []contract.SQLStatement{
		{Name: "up", Transaction: true, Weight: 1, SQL: "UPDATE t SET n = n + 1 WHERE id = 1; UPDATE t SET n = n + 1 WHERE id = 2"},
		{Name: "down", Transaction: true, Weight: 1, SQL: "UPDATE t SET n = n + 1 WHERE id = 2; UPDATE t SET n = n + 1 WHERE id = 1"},
	}
	spec.Load = contract.Load{Clients: 8, Events: 2000}
	spec.Cleanup = contract.CleanupNever
	r := mustSucceed(t, spec)
	if r.Result.Retries == 0 || r.Result.Attempts != r.Result.Events+r.Result.Retries {
		t.Errorf("%d events, %d attempts, %d retries", r.Result.Events, r.Result.Attempts, r.Result.Retries)
	}
	if rows := server.Rows(t, "SELECT n FROM dbbench.t"); fmt.Sprint(rows) != "[[2000] [2000]]" {
		t.Errorf("the rows count %v, want 2000", rows)
	}
}
