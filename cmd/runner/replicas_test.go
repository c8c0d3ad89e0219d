//go:build linux

package main

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// shared is a run of several replicas, which meet on the loopback interface.
func shared(t *testing.T, s *mariadb.Server, replicas int32) contract.RunSpec {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spec := slapSpec(t, s)
	spec.Replicas, spec.Load.Clients = replicas, replicas
	spec.Rendezvous = &contract.Rendezvous{Host: "127.0.0.1", Port: int32(l.Addr().(*net.TCPAddr).Port), JoinTimeout: seconds(20)}
	return spec
}

// startAll starts all replicas of a run, but for those that are left out.
func startAll(t *testing.T, spec contract.RunSpec, without ...int) []*process {
	t.Helper()
	all := make([]*process, spec.Replicas)
	for i := range all {
		if !slices.Contains(without, i) {
			all[i] = startReplica(t, spec, i)
		}
	}
	return all
}

func mustShare(t *testing.T, spec contract.RunSpec) []*contract.Record {
	t.Helper()
	var records []*contract.Record
	for i, p := range startAll(t, spec) {
		o := p.wait()
		if o.exit != exitOK || o.recordErr != nil {
			t.Fatalf("replica %d: exit code %d, record %v\n%s\n%s", i, o.exit, o.recordErr, tail(o.stdout), o.stderr)
		}
		if o.record.Start.Replica != int32(i) {
			t.Errorf("replica %d reports as %d", i, o.record.Start.Replica)
		}
		checkCounts(t, o.record)
		records = append(records, o.record)
	}
	return records
}

// TestReplicasShareARun: clients and events are dealt exactly, all start together, and
// the server saw what they say.
func TestReplicasShareARun(t *testing.T) {
	server := mariadb.Start(t)
	for _, tt := range []struct {
		name            string
		workload        contract.Workload
		load            contract.Load
		prepare         contract.Prepare
		clients, events []int64 // by replica; no events where they are not fixed
	}{
		{"events per client", slapWorkload(contract.SlapWrite), contract.Load{Clients: 8, EventsPerClient: 200}, contract.PreparePerRun, []int64{3, 3, 2}, []int64{600, 600, 400}},
		{"keys that the first has read", slapWorkload(contract.SlapKey), contract.Load{Clients: 3, EventsPerClient: 100}, contract.PreparePerRun, []int64{1, 1, 1}, []int64{100, 100, 100}},
		{"shared events", oltpSpec(t, server, contract.OLTPReadWrite).Workload, contract.Load{Clients: 7, Events: 1001}, contract.PreparePerDataset, []int64{3, 2, 2}, []int64{429, 286, 286}},
		{"duration", oltpSpec(t, server, contract.OLTPReadWrite).Workload, contract.Load{Clients: 4, Duration: seconds(1), Warmup: contract.Duration(200 * time.Millisecond)}, contract.PreparePerDataset, []int64{2, 1, 1}, nil},
		{"each row once", payloadSpec(t, server, contract.PayloadInsert).Workload, contract.Load{Clients: 5}, contract.PreparePerRun, []int64{2, 2, 1}, []int64{400, 400, 200}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := shared(t, server, 3)
			spec.Workload, spec.Load, spec.Prepare = tt.workload, tt.load, tt.prepare
			records := mustShare(t, spec)
			var starts []int64
			for i, r := range records {
				if int64(r.Result.Clients) != tt.clients[i] {
					t.Errorf("replica %d drove %d clients, want %d", i, r.Result.Clients, tt.clients[i])
				}
				if tt.events != nil && r.Result.Events != tt.events[i] || r.Result.Events == 0 {
					t.Errorf("replica %d did %d events, want %v", i, r.Result.Events, tt.events)
				}
				if has := r.Environment.StatusDeltas != nil; has != (i == 0) {
					t.Errorf("replica %d reports the server's counters: %v", i, has)
				}
				starts = append(starts, r.Result.MeasureStartUnixNanos)
			}
			t.Logf("start skew %s", time.Duration(slices.Max(starts)-slices.Min(starts)))
			if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
				t.Error("the database is still there")
			}
		})
	}
}

func slapWorkload(loadType string) contract.Workload {
	return contract.Workload{Slap: &contract.Slap{LoadType: loadType, AutoIncrement: true, IntColumns: 1, CharColumns: 1,
		UniqueQueries: 10, UniqueWrites: 10, PreloadRows: 100, TimingIncludesConnect: true}}
}

func TestAMissingReplicaFailsTheRun(t *testing.T) {
	server := mariadb.Start(t)
	spec := shared(t, server, 3)
	spec.Rendezvous.JoinTimeout = seconds(2)
	all := startAll(t, spec, 1)
	f := mustFail(t, all[0].wait(), contract.ClassReplicaLost)
	if !strings.Contains(f.Message, "replica 1 did not come") {
		t.Errorf("message %q", f.Message)
	}
	f = mustFail(t, all[2].wait(), contract.ClassPeerFailed)
	if !strings.Contains(f.Message, "replica 1 did not come") {
		t.Errorf("message %q", f.Message)
	}
	if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
		t.Error("the database is still there")
	}
}

// TestAReplicaIsLostDuringTheLoad, by a kill or by a signal: the others stop, keep what
// they measured, and the data is dropped.
func TestAReplicaIsLostDuringTheLoad(t *testing.T) {
	server := mariadb.Start(t)
	for _, tt := range []struct {
		signal syscall.Signal
		victim int
		class  []contract.Class // by replica, "" is the victim
		want   string
	}{
		{syscall.SIGKILL, 2, []contract.Class{contract.ClassReplicaLost, contract.ClassPeerFailed, ""}, "lost touch with replica 2"},
		{syscall.SIGTERM, 1, []contract.Class{contract.ClassPeerFailed, "", contract.ClassPeerFailed}, "replica 1 failed: the runner was told to stop"},
		{syscall.SIGTERM, 0, []contract.Class{"", contract.ClassPeerFailed, contract.ClassPeerFailed}, "replica 0 failed: the runner was told to stop"},
		{syscall.SIGKILL, 0, []contract.Class{"", contract.ClassReplicaLost, contract.ClassReplicaLost}, "lost touch with replica 0"},
	} {
		t.Run(tt.signal.String()+" "+strconv.Itoa(tt.victim), func(t *testing.T) {
			spec := shared(t, server, 3)
			spec.Load = contract.Load{Clients: 6, Duration: seconds(50)}
			all := startAll(t, spec)
			for _, p := range all {
				p.await(measuring)
			}
			time.Sleep(500 * time.Millisecond)
			if err := all[tt.victim].command.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			for i, p := range all {
				o := p.wait()
				if tt.class[i] == "" {
					continue
				}
				f := mustFail(t, o, tt.class[i])
				if r := o.record.Result; !strings.Contains(f.Message, tt.want) || r.Outcome != contract.OutcomePartial || r.Events == 0 {
					t.Errorf("replica %d: %+v, %s, %d events", i, f, r.Outcome, r.Events)
				}
			}
			if left := len(server.Rows(t, "SHOW DATABASES LIKE 'dbbench'")); left != 0 && all[0].command.ProcessState.Exited() {
				t.Error("the database is still there")
			}
			server.Exec(t, "DROP DATABASE IF EXISTS dbbench")
		})
	}
}

// TestAReplicaFailsDuringTheLoad: the failure of one is told to all.
func TestAReplicaFailsDuringTheLoad(t *testing.T) {
	server := mariadb.Start(t)
	spec := shared(t, server, 3)
	spec.Load = contract.Load{Clients: 3, Duration: seconds(50)}
	spec.Workload = slapWorkload(contract.SlapWrite)
	all := startAll(t, spec)
	for _, p := range all {
		p.await(measuring)
	}
	// A trigger fails the INSERTs of one connection.
	const clients = "SELECT MAX(id) FROM information_schema.processlist WHERE user = 'bench' AND db = 'dbbench'"
	server.Exec(t, "CREATE TRIGGER dbbench.refuse BEFORE INSERT ON dbbench.t1 FOR EACH ROW IF CONNECTION_ID() = "+server.Rows(t, clients)[0][0]+
		" THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'refused'; END IF")
	var own, peers int
	for i, p := range all {
		o := p.wait()
		if o.exit != exitFailed || o.recordErr != nil || o.record.Result.Failure == nil {
			t.Fatalf("replica %d: exit code %d, record %v\n%s\n%s", i, o.exit, o.recordErr, tail(o.stdout), o.stderr)
		}
		f := o.record.Result.Failure
		if f.MySQLError != 1644 || !strings.Contains(f.Message, "refused") {
			t.Errorf("replica %d: %+v", i, f)
		}
		switch f.Class {
		case contract.ClassWorkloadFailed:
			own++
		case contract.ClassPeerFailed:
			peers++
		}
	}
	if own < 1 || own+peers != 3 {
		t.Errorf("%d failed by themselves, %d for another", own, peers)
	}
}

func TestReplicasWithAWrongPassword(t *testing.T) {
	server := mariadb.Start(t)
	spec := shared(t, server, 2)
	spec.Rendezvous.JoinTimeout = seconds(3)
	server.Exec(t, "ALTER USER bench IDENTIFIED BY 'another'")
	for _, p := range startAll(t, spec) {
		mustFail(t, p.wait(), contract.ClassAuthenticationFailed)
	}
}
