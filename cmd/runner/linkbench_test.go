//go:build linux

package main

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// linkBenchSpec is a run of a small graph, in which clients meet often.
func linkBenchSpec(t *testing.T, s *mariadb.Server) contract.RunSpec {
	t.Helper()
	spec := slapSpec(t, s)
	seed := int64(1)
	spec.Workload = contract.Workload{LinkBench: &contract.LinkBench{
		StartID: 1, MaxID: 1001, LinkTypes: 2, NLinksMax: 2000, Engine: "InnoDB", Partitions: 16, Loaders: 4, LoadBatch: 1024,
		LinkDataSize: 8, NodeDataSize: 128, MaxFailedRequests: 100, WriteUncorrelatedBug: true, LeftoverBug: true, Seed: &seed,
		Mix: contract.LinkBenchMix{AddLink: "8.9886601", DeleteLink: "2.9907664", UpdateLink: "8.0122125", CountLink: "4.8863567",
			GetLink: "0.5261142", GetLinkList: "50.7119145", GetNode: "12.9326683", AddNode: "2.5732789", UpdateNode: "7.366437",
			DeleteNode: "1.0115914"},
	}}
	spec.Load = contract.Load{Clients: 8, Events: 10000}
	spec.Prepare, spec.Cleanup = contract.PreparePerDataset, contract.CleanupNever
	return spec
}

// wrongCounts asks the server, in other words than the runner, how many pairs of a node
// and a type have a count that is not the number of their visible links.
func wrongCounts(t *testing.T, s *mariadb.Server) string {
	t.Helper()
	return s.Rows(t, `SELECT
		(SELECT COUNT(*) FROM dbbench.counttable c WHERE c.count <>
			(SELECT COUNT(*) FROM dbbench.linktable l WHERE l.id1 = c.id AND l.link_type = c.link_type AND l.visibility = 1)) +
		(SELECT COUNT(DISTINCT l.id1, l.link_type) FROM dbbench.linktable l LEFT JOIN dbbench.counttable c
			ON c.id = l.id1 AND c.link_type = l.link_type WHERE l.visibility = 1 AND c.id IS NULL)`)[0][0]
}

func countOf(t *testing.T, s *mariadb.Server, table, where string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.Rows(t, "SELECT COUNT(*) FROM dbbench."+table+" WHERE "+where)[0][0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLinkBench runs what needs a server without options of its own on one.
func TestLinkBench(t *testing.T) {
	server := mariadb.Start(t)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *mariadb.Server)
	}{
		{"counts hold", linkBenchCountsHold},
		{"mix on server", linkBenchMixOnServer},
		{"tables", linkBenchTables},
		{"dataset is shared", linkBenchDatasetIsShared},
		{"without transactions", linkBenchWithoutTransactions},
		{"failed requests", linkBenchFailedRequests},
		{"loses connections", linkBenchLosesConnections},
		{"modes", linkBenchModes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server.Exec(t, "DROP DATABASE IF EXISTS dbbench")
			tt.test(t, server)
		})
	}
}

// linkBenchCountsHold has clients change the same links at once: after the load and
// after the run the counts are those of the visible links.
func linkBenchCountsHold(t *testing.T, server *mariadb.Server) {
	spec := linkBenchSpec(t, server)
	// Few nodes, and changes above all.
	spec.Workload.LinkBench.MaxID = 51
	spec.Workload.LinkBench.Mix = contract.LinkBenchMix{AddLink: "30", DeleteLink: "30", UpdateLink: "30", CountLink: "2", GetLink: "2",
		GetLinkList: "2", GetNode: "1", AddNode: "1", UpdateNode: "1", DeleteNode: "1"}
	spec.Load = contract.Load{Clients: 16, Events: 10000}
	r := mustSucceed(t, spec)
	checkCounts(t, r)
	if n := wrongCounts(t, server); n != "0" || r.Result.Checks["countMismatches"] != "0" || r.Result.Checks["nodesChecked"] != "50" {
		t.Errorf("%s counts are wrong, the runner found %v", n, r.Result.Checks)
	}
	if got, want := r.Result.Checks["visibleLinks"], strconv.FormatInt(countOf(t, server, "linktable", "visibility = 1"), 10); got != want {
		t.Errorf("the runner found %s visible links, want %s", got, want)
	}
	if r.Result.Events != 10000 || r.Result.Errors != 0 || r.Environment.StatusDeltas["Com_rollback"] != r.Result.Retries {
		t.Errorf("result %+v, %d ROLLBACKs", r.Result, r.Environment.StatusDeltas["Com_rollback"])
	}
	if hidden := countOf(t, server, "linktable", "visibility = 0"); hidden == 0 {
		t.Error("no link was hidden")
	}
	t.Logf("%d retries in %d operations, %s visible links", r.Result.Retries, r.Result.Events, r.Result.Checks["visibleLinks"])

	// What is wrong is found: a count, a count too many, and one that is missing.
	pair := server.Rows(t, "SELECT id, link_type FROM dbbench.counttable WHERE count > 0 LIMIT 2")
	server.Exec(t,
		fmt.Sprintf("UPDATE dbbench.counttable SET count = count + 1 WHERE id = %s AND link_type = %s", pair[0][0], pair[0][1]),
		fmt.Sprintf("DELETE FROM dbbench.counttable WHERE id = %s AND link_type = %s", pair[1][0], pair[1][1]),
		"INSERT INTO dbbench.counttable VALUES (50, 1, 1, 0, 0)")
	spec.Prepare = contract.PrepareNever
	spec.Workload.LinkBench.Mix = contract.LinkBenchMix{AddLink: "0", DeleteLink: "0", UpdateLink: "0", CountLink: "100", GetLink: "0",
		GetLinkList: "0", GetNode: "0", AddNode: "0", UpdateNode: "0", DeleteNode: "0"}
	spec.Load.Events = 100
	if r := mustSucceed(t, spec); r.Result.Checks["countMismatches"] != "3" {
		t.Errorf("of 3 wrong counts the runner found %v", r.Result.Checks)
	}
}

// TestLinkBenchWaitsForLocks holds all links locked for longer than a client waits: the
// operations are run again until they succeed, and no count is lost with them.
func TestLinkBenchWaitsForLocks(t *testing.T) {
	server := mariadb.Start(t, "--innodb-lock-wait-timeout=1")
	spec := linkBenchSpec(t, server)
	spec.Load = contract.Load{Clients: 4, Duration: seconds(5)}
	p := start(t, spec)
	p.await(measuring)
	tx, err := server.Root.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SET innodb_lock_wait_timeout = 30"); err != nil { // it has to wait for the clients itself
		t.Fatal(err)
	}
	if _, err := tx.Exec("DELETE FROM dbbench.counttable"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	o := p.wait()
	if o.exit != exitOK {
		t.Fatalf("exit code %d: %s", o.exit, o.stderr)
	}
	r := o.record
	if r.Result.Retries == 0 || r.Result.Errors != 0 || r.Environment.StatusDeltas["Com_rollback"] < r.Result.Retries {
		t.Errorf("result %+v, %d ROLLBACKs, want some retries", r.Result, r.Environment.StatusDeltas["Com_rollback"])
	}
	if n := wrongCounts(t, server); n != "0" || r.Result.Checks["countMismatches"] != "0" {
		t.Errorf("%s counts are wrong, the runner found %v", n, r.Result.Checks)
	}
	// An operation and all its attempts are one latency.
	var longest int64
	for _, o := range r.Operations {
		longest = max(longest, o.MaxNanos)
	}
	if longest < int64(time.Second) {
		t.Errorf("no operation took longer than %s", time.Duration(longest))
	}
}

// linkBenchMixOnServer runs the default mix, and compares what the server has done.
func linkBenchMixOnServer(t *testing.T, server *mariadb.Server) {
	spec := linkBenchSpec(t, server)
	spec.Workload.LinkBench.NLinksMax = 25_000 // lists of more than 10000 links
	r := mustSucceed(t, spec)
	checkCounts(t, r)
	shares := map[string]float64{"ADD_LINK": 8.9886601, "DELETE_LINK": 2.9907664, "UPDATE_LINK": 8.0122125, "COUNT_LINK": 4.8863567,
		"MULTIGET_LINK": 0.5261142, "GET_LINKS_LIST": 50.7119145, "GET_NODE": 12.9326683, "ADD_NODE": 2.5732789, "UPDATE_NODE": 7.366437,
		"DELETE_NODE": 1.0115914}
	counts := map[string]int64{}
	for _, o := range r.Operations {
		counts[o.Name] = o.Count
	}
	for name, want := range shares {
		if got := float64(counts[name]) / 100; got == 0 || math.Abs(got-want) > 2 {
			t.Errorf("%s is %.2f %% of the operations, want %.2f", name, got, want)
		}
	}
	if n := wrongCounts(t, server); n != "0" || r.Result.Checks["countMismatches"] != "0" {
		t.Errorf("%s counts are wrong, the runner found %v", n, r.Result.Checks)
	}
	for _, finding := range []string{"linksFound", "linksNotFound", "linksListed", "historyQueries"} {
		if n, err := strconv.ParseInt(r.Result.Checks[finding], 10, 64); err != nil || n < 1 {
			t.Errorf("%s: %q", finding, r.Result.Checks[finding])
		}
	}
	checkNodes(t, server, counts)
	checkStatements(t, r, counts)
}

// checkNodes looks for what the operations on nodes have done. A node is deleted once,
// and may have been deleted when it is updated.
func checkNodes(t *testing.T, server *mariadb.Server, counts map[string]int64) {
	t.Helper()
	if got := countOf(t, server, "nodetable", "id > 1000"); got != counts["ADD_NODE"] {
		t.Errorf("%d nodes were added, want %d", got, counts["ADD_NODE"])
	}
	if got := 1000 - countOf(t, server, "nodetable", "id <= 1000"); got < counts["DELETE_NODE"]/2 || got > counts["DELETE_NODE"] {
		t.Errorf("%d nodes are gone, after %d operations", got, counts["DELETE_NODE"])
	}
	if got := countOf(t, server, "nodetable", "version = 2"); got == 0 || got > counts["UPDATE_NODE"] {
		t.Errorf("%d nodes are updated, after %d operations", got, counts["UPDATE_NODE"])
	}
}

// checkStatements holds the server's counters against the operations: one COMMIT to each
// that changes data, one SELECT to each that reads or deletes a link.
func checkStatements(t *testing.T, r *contract.Record, counts map[string]int64) {
	t.Helper()
	if r.Result.Retries > 0 {
		return // attempts are counted too
	}
	var changes, reads int64
	for _, name := range []string{"ADD_LINK", "UPDATE_LINK", "DELETE_LINK", "ADD_NODE", "UPDATE_NODE", "DELETE_NODE"} {
		changes += counts[name]
	}
	for _, name := range []string{"COUNT_LINK", "MULTIGET_LINK", "GET_LINKS_LIST", "GET_NODE", "DELETE_LINK"} {
		reads += counts[name]
	}
	if d := r.Environment.StatusDeltas; d["Com_commit"] != changes || d["Com_select"] != reads {
		t.Errorf("%d commits and %d selects, want %d and %d", d["Com_commit"], d["Com_select"], changes, reads)
	}
}

// linkBenchTables holds the tables against those of the tool, as the server shows them.
func linkBenchTables(t *testing.T, server *mariadb.Server) {
	spec := linkBenchSpec(t, server)
	spec.Load.Events = 10
	mustSucceed(t, spec)
	for table, want := range map[string]string{
		"linktable": `CREATE TABLE $linktable$ (
  $id1$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $id2$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $link_type$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $visibility$ tinyint(3) NOT NULL DEFAULT 0,
  $data$ varchar(255) NOT NULL DEFAULT '',
  $time$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $version$ int(11) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY ($link_type$,$id1$,$id2$),
  KEY $id1_type$ ($id1$,$link_type$,$visibility$,$time$,$id2$,$version$,$data$)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci
 PARTITION BY KEY ($id1$)
PARTITIONS 16`,
		"counttable": `CREATE TABLE $counttable$ (
  $id$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $link_type$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $count$ int(10) unsigned NOT NULL DEFAULT 0,
  $time$ bigint(20) unsigned NOT NULL DEFAULT 0,
  $version$ bigint(20) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY ($id$,$link_type$)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci`,
		"nodetable": `CREATE TABLE $nodetable$ (
  $id$ bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  $type$ int(10) unsigned NOT NULL,
  $version$ bigint(20) unsigned NOT NULL,
  $time$ int(10) unsigned NOT NULL,
  $data$ mediumtext NOT NULL,
  PRIMARY KEY ($id$)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci`,
	} {
		got := ours.ReplaceAllString(server.Rows(t, "SHOW CREATE TABLE dbbench."+table)[0][1], "")
		if want = strings.ReplaceAll(want, "$", "`"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if o := runSpec(t, spec, "cleanup"); o.exit != exitOK || len(server.Rows(t, "SHOW DATABASES LIKE 'dbbench'")) != 0 {
		t.Errorf("cleanup: exit code %d: %s", o.exit, o.stderr)
	}
}

// TestLinkBenchLoads964k loads the smallest graph that the tool is used with: a thousand
// nodes, of which one has 962 thousand links.
func TestLinkBenchLoads964k(t *testing.T) {
	if testing.Short() {
		t.Skip("loads 964 thousand links")
	}
	server := mariadb.Start(t, "--innodb-buffer-pool-size=512M")
	spec := linkBenchSpec(t, server)
	spec.Workload.LinkBench.NLinksMax, spec.Timeout = 0, contract.Duration(10*time.Minute)
	spec.Load = contract.Load{Clients: 4, Events: 400}
	began := time.Now()
	r := mustSucceed(t, spec)
	links := countOf(t, server, "linktable", "time <= 1767225600000")
	if links < 962_000 || links > 966_000 {
		t.Errorf("%d links were loaded, want about 964 thousand", links)
	}
	if r.Result.Checks["countMismatches"] != "0" || r.Result.Checks["nodesChecked"] != "1000" {
		t.Errorf("the runner found %v", r.Result.Checks)
	}
	t.Logf("%d links, the run took %s", links, time.Since(began).Round(time.Second))
	if n := inserts(t, server, spec); n > 400 {
		t.Errorf("the graph was loaded again, with %d INSERTs", n)
	}
}

// graph is how many rows a graph of linkBenchSpec has at least, by table.
func graph(t *testing.T, s *mariadb.Server) map[string]int64 {
	t.Helper()
	return map[string]int64{"nodes": countOf(t, s, "nodetable", "id <= 1000"), "links": countOf(t, s, "linktable", "TRUE"),
		"counts": countOf(t, s, "counttable", "TRUE")}
}

func graphChecksum(t *testing.T, s *mariadb.Server) string {
	t.Helper()
	return fmt.Sprint(s.Rows(t, "CHECKSUM TABLE dbbench.linktable, dbbench.counttable, dbbench.nodetable"))
}

func linkBenchDatasetIsShared(t *testing.T, server *mariadb.Server) {
	spec := linkBenchSpec(t, server)
	lb := spec.Workload.LinkBench
	lb.Mix = contract.LinkBenchMix{AddLink: "0", DeleteLink: "0", UpdateLink: "0", CountLink: "50", GetLink: "0",
		GetLinkList: "50", GetNode: "0", AddNode: "0", UpdateNode: "0", DeleteNode: "0"}
	spec.Load.Events = 100
	if inserts(t, server, spec) == 0 {
		t.Error("nothing was loaded")
	}
	loaded := graph(t, server)
	first := graphChecksum(t, server)
	lb.Loaders, lb.LoadBatch, lb.WriteUncorrelatedBug = 1, 10, false
	if n := inserts(t, server, spec); n != 0 {
		t.Errorf("options that leave the graph alone: %d INSERTs", n)
	}
	for _, damage := range []string{
		"DELETE FROM dbbench.linktable LIMIT 1", "DELETE FROM dbbench.counttable LIMIT 1", "DELETE FROM dbbench.nodetable LIMIT 101",
		"DROP TABLE dbbench.linktable", "DELETE FROM dbbench._dbbench_dataset WHERE step = 0",
	} {
		server.Exec(t, damage)
		if inserts(t, server, spec) == 0 {
			t.Errorf("%s: was not seen", damage)
		}
		if got := graph(t, server); !maps.Equal(got, loaded) || graphChecksum(t, server) != first {
			t.Errorf("%s: loaded %v, want %v and the same data", damage, got, loaded)
		}
	}
	// A load that was cut off goes on with what is missing.
	server.Exec(t, "DELETE FROM dbbench._dbbench_dataset WHERE step = 3", "DELETE FROM dbbench.counttable LIMIT 300")
	if n := inserts(t, server, spec); n == 0 || n > 2 || !maps.Equal(graph(t, server), loaded) {
		t.Errorf("%d INSERTs, and now %v, want %v", n, graph(t, server), loaded)
	}
	server.Exec(t, "DELETE FROM dbbench.linktable LIMIT 1")
	spec.Prepare = contract.PrepareNever
	if f := mustFail(t, runSpec(t, spec), contract.ClassPrepareFailed); !strings.Contains(f.Message, "linktable") {
		t.Errorf("failure %+v", f)
	}
	lb.NLinksMax = 10
	spec.Prepare = contract.PreparePerDataset
	if inserts(t, server, spec) == 0 {
		t.Error("a graph of another shape was taken")
	}
}

// linkBenchWithoutTransactions: engines without them work, with counts that may be
// wrong.
func linkBenchWithoutTransactions(t *testing.T, server *mariadb.Server) {
	for _, engine := range []string{"MyISAM", "Aria"} {
		spec := linkBenchSpec(t, server)
		spec.Workload.LinkBench.Engine, spec.Workload.LinkBench.Partitions, spec.Load.Events = engine, 0, 2000
		if r := mustSucceed(t, spec); r.Result.Errors != 0 || r.Result.Events != 2000 {
			t.Errorf("%s: result %+v", engine, r.Result)
		}
	}
}

// linkBenchFailedRequests takes a table away under the clients.
func linkBenchFailedRequests(t *testing.T, server *mariadb.Server) {
	run := func(most int32) outcome {
		spec := linkBenchSpec(t, server)
		spec.Workload.LinkBench.MaxFailedRequests = most
		spec.Load = contract.Load{Clients: 2, Duration: seconds(3)}
		spec.Prepare = contract.PreparePerRun
		p := start(t, spec)
		p.await(measuring)
		time.Sleep(500 * time.Millisecond)
		server.Exec(t, "DROP TABLE dbbench.nodetable")
		return p.wait()
	}
	f := mustFail(t, run(5), contract.ClassWorkloadFailed)
	if f.MySQLError != 1146 || !strings.HasPrefix(f.Message, "all clients stopped after 6 failed operations") {
		t.Errorf("failure %+v", f)
	}
	o := run(-1)
	if o.exit != exitOK || o.record.Result.ErrorsByNumber[1146] == 0 || o.record.Result.Errors != o.record.Result.ErrorsByNumber[1146] {
		t.Errorf("exit code %d, %+v", o.exit, o.record)
	}
}

// linkBenchLosesConnections kills the clients' connections: the operations that were
// under way fail, the clients go on, and no count is lost with them.
func linkBenchLosesConnections(t *testing.T, server *mariadb.Server) {
	spec := linkBenchSpec(t, server)
	spec.Load = contract.Load{Clients: 4, Duration: seconds(3)}
	p := start(t, spec)
	p.await(measuring)
	time.Sleep(time.Second)
	for _, r := range server.Rows(t, "SELECT id FROM information_schema.processlist WHERE user = '"+mariadb.User+"' AND db = 'dbbench'") {
		_, _ = server.Root.Exec("KILL " + r[0]) // it may be gone with its client's other one
	}
	o := p.wait()
	if o.exit != exitOK || o.record.Result.Reconnects == 0 || o.record.Result.Errors == 0 {
		t.Fatalf("exit code %d: %+v\n%s", o.exit, o.record, o.stderr)
	}
	if n := wrongCounts(t, server); n != "0" || o.record.Result.Checks["countMismatches"] != "0" {
		t.Errorf("%s counts are wrong, the runner found %v", n, o.record.Result.Checks)
	}
}

// linkBenchModes: data are bytes, and mean the same whatever the sql_mode is.
func linkBenchModes(t *testing.T, server *mariadb.Server) {
	var first string
	for _, mode := range []string{"", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,IGNORE_SPACE"} {
		spec := linkBenchSpec(t, server)
		spec.Target.SessionVariables = map[string]string{"sql_mode": mode}
		spec.Load, spec.Prepare = contract.Load{Clients: 1, Events: 500}, contract.PreparePerRun
		mustSucceed(t, spec)
		sum := graphChecksum(t, server)
		if first == "" {
			first = sum
		}
		if sum != first {
			t.Errorf("sql_mode %q: other data", mode)
		}
	}
}
