package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	driverpkg "github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload"
)

func TestFailureOf(t *testing.T) {
	number := func(n uint16) error { return &driverpkg.MySQLError{Number: n, Message: "words"} }
	refused := &dialError{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	given := &contract.Failure{Class: contract.ClassVerifyFailed, Message: "m"}
	for _, tt := range []struct {
		err   error
		class contract.Class
		hint  string // part of it
	}{
		{number(1045), contract.ClassAuthenticationFailed, "credentialsSecretRef"},
		{number(1040), contract.ClassPreflightFailed, "spec.load.clients"},
		{number(1290), contract.ClassPreflightFailed, "primary server"},
		{number(3159), contract.ClassTLSFailed, "Required"},
		{number(1053), contract.ClassTargetUnreachable, "log"},
		{number(1062), contract.ClassPrepareFailed, "unique"},
		{number(65000), contract.ClassPrepareFailed, ""},
		{fmt.Errorf("load rows: %w", number(1142)), contract.ClassPreflightFailed, "GRANT"},
		{refused, contract.ClassTargetUnreachable, "nothing listens"},
		{&dialError{&net.DNSError{Name: "x"}}, contract.ClassTargetUnreachable, "DNS"},
		{&dialError{context.DeadlineExceeded}, contract.ClassTargetUnreachable, "network policies"},
		{context.DeadlineExceeded, contract.ClassTargetUnreachable, "port"},
		{&tlsError{errors.New("tls: odd")}, contract.ClassTLSFailed, "spec.targets[].tls"},
		{driverpkg.ErrNoTLS, contract.ClassTLSFailed, "Preferred"},
		{driverpkg.ErrUnknownPlugin, contract.ClassAuthenticationFailed, "caching_sha2_password"},
		{driverpkg.ErrPktTooLarge, contract.ClassPreflightFailed, "max_allowed_packet"},
		{driver.ErrBadConn, contract.ClassTargetUnreachable, "log"},
		{driverpkg.ErrInvalidConn, contract.ClassTargetUnreachable, "log"},
		{io.ErrUnexpectedEOF, contract.ClassTargetUnreachable, "log"},
		{errors.New("odd"), contract.ClassPrepareFailed, ""},
		{fmt.Errorf("more: %w", given), contract.ClassVerifyFailed, ""},
	} {
		f := FailureOf(tt.err, contract.ClassPrepareFailed)
		if f.Class != tt.class || !strings.Contains(f.Hint, tt.hint) || f.Message == "" {
			t.Errorf("%v: got %+v, want class %s and %q in the hint", tt.err, f, tt.class, tt.hint)
		}
		if f.MySQLError != Number(tt.err) {
			t.Errorf("%v: number %d", tt.err, f.MySQLError)
		}
	}
}

func TestMeaningsAreWhole(t *testing.T) {
	for n, m := range meanings {
		if m.hint == "" {
			t.Errorf("%d has no hint", n)
		}
	}
}

func TestIsTransientConnect(t *testing.T) {
	for err, want := range map[error]bool{
		&driverpkg.MySQLError{Number: 1040}:                                       true,
		&driverpkg.MySQLError{Number: 1045}:                                       false,
		&dialError{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}:           true,
		&dialError{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere"}}}: false,
		&tlsError{io.EOF}:          false,
		driverpkg.ErrInvalidConn:   true,
		driverpkg.ErrUnknownPlugin: false,
	} {
		if got := IsTransientConnect(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func testServer() Server {
	return Server{Version: "10.11.19-MariaDB", Engines: map[string]bool{"INNODB": true, "MEMORY": true},
		Variables: map[string]string{"max_connections": "151", "max_user_connections": "0", "max_allowed_packet": "16777216",
			"max_prepared_stmt_count": "100", "read_only": "OFF"}}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name, variable, value string
		need                  workload.Requirements
		clients, replicas     int64
		connected             int64
		want                  string // part of the message; "" is no failure
	}{
		{name: "all is well", clients: 150},
		{name: "one client too many", clients: 151, want: "max_connections is 151"},
		{name: "two sessions each", need: workload.Requirements{Sessions: 2}, clients: 76, want: "takes 153 connections"},
		{name: "some in use by others", connected: 11, clients: 141, want: "max_connections is 151, of which 10 are in use"},
		{name: "the run's own are not in use", connected: 4, replicas: 4, clients: 150},
		{name: "limited account", variable: "max_user_connections", value: "3", clients: 3, want: "max_user_connections is 3"},
		{name: "read_only", variable: "read_only", value: "ON", want: "read-only"},
		{name: "read_only of MariaDB 12", variable: "read_only", value: "NO_LOCK", want: "read-only"},
		{name: "super_read_only", variable: "super_read_only", value: "1", want: "super_read_only"},
		{name: "innodb_read_only", variable: "innodb_read_only", value: "ON", want: "innodb_read_only"},
		{name: "transaction_read_only", variable: "transaction_read_only", value: "ON", want: "transaction_read_only is ON"},
		{name: "disabled engine", variable: "disabled_storage_engines", value: "MyISAM, heap", need: workload.Requirements{Engines: []string{"memory"}, EngineField: "spec.x"},
			want: `spec.x: the server has disabled the storage engine "memory" (disabled_storage_engines is MyISAM, heap)`},
		{name: "enforced engine", variable: "enforce_storage_engine", value: "InnoDB", need: workload.Requirements{Engines: []string{"Memory"}}, want: "enforce_storage_engine"},
		{name: "enforced and wanted", variable: "enforce_storage_engine", value: "InnoDB", need: workload.Requirements{Engines: []string{"innodb"}}},
		{name: "Galera demands keys", variable: "wsrep_mode", value: "STRICT_REPLICATION,REQUIRED_PRIMARY_KEY", need: workload.Requirements{NoPrimaryKey: true}, want: "wsrep_mode"},
		{name: "group replication demands keys", variable: "group_replication_group_name", value: "aaaa", need: workload.Requirements{NoPrimaryKey: true}, want: "group_replication"},
		{name: "fits into memory", variable: "max_heap_table_size", value: "1000", need: workload.Requirements{Engines: []string{"heap"}, TableBytes: 1000}},
		{name: "does not", variable: "max_heap_table_size", value: "1000", need: workload.Requirements{Engines: []string{"heap"}, TableBytes: 1001}, want: "max_heap_table_size of 1000"},
		{name: "on a disk", variable: "max_heap_table_size", value: "1000", need: workload.Requirements{Engines: []string{"innodb"}, TableBytes: 1001}},
		{name: "engine", need: workload.Requirements{Engines: []string{"innodb", "heap"}}},
		{name: "unknown engine", need: workload.Requirements{Engines: []string{"Falcon"}, EngineField: "spec.x"}, want: `spec.x: the server has no storage engine "Falcon"`},
		{name: "primary key", variable: "sql_require_primary_key", value: "ON", need: workload.Requirements{NoPrimaryKey: true}, want: "primary keys"},
		{name: "primary key that is there", variable: "sql_require_primary_key", value: "ON"},
		{name: "PXC permits", variable: "pxc_strict_mode", value: "PERMISSIVE", need: workload.Requirements{NoPrimaryKey: true}},
		{name: "PXC enforces", variable: "pxc_strict_mode", value: "ENFORCING", need: workload.Requirements{NoPrimaryKey: true}, want: "pxc_strict_mode"},
		{name: "statements", need: workload.Requirements{Statements: 20}, clients: 5},
		{name: "too many statements", need: workload.Requirements{Statements: 21}, clients: 5, want: "105 prepared statements"},
		{name: "packet", need: workload.Requirements{LargestPacket: 16 << 20}, want: "max_allowed_packet is 16777216"},
	} {
		s := testServer()
		if tt.variable != "" {
			s.Variables[tt.variable] = tt.value
		}
		s.Connected = tt.connected
		tt.need.Sessions = max(tt.need.Sessions, 1)
		f := s.Check(Demand{Requirements: tt.need, Clients: max(tt.clients, 1), Replicas: max(tt.replicas, 1)})
		switch {
		case tt.want == "" && f != nil:
			t.Errorf("%s: %v", tt.name, f)
		case tt.want != "" && (f == nil || !strings.Contains(f.Message, tt.want) || f.Hint == "" || f.Class != contract.ClassPreflightFailed):
			t.Errorf("%s: got %+v, want %q", tt.name, f, tt.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		variables map[string]string
		packet    int
		want      string // part of the only warning; "" is none
	}{
		{map[string]string{"innodb_redo_log_capacity": "1000"}, 100, ""},
		{map[string]string{"innodb_redo_log_capacity": "1000"}, 101, "redo log of 1000 bytes"},
		{map[string]string{"innodb_log_file_size": "500", "innodb_log_files_in_group": "2"}, 101, "redo log of 1000 bytes"},
		{map[string]string{"innodb_log_file_size": "1000"}, 101, "redo log of 1000 bytes"},
		{nil, 101, ""},
	} {
		got := Server{Variables: tt.variables}.Warnings(Demand{Requirements: workload.Requirements{LargestPacket: tt.packet}})
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%v: %q", tt.variables, got)
		}
	}
}

func TestFlavors(t *testing.T) {
	for version, want := range map[string]struct {
		flavor   string
		comments bool
	}{
		"10.11.19-MariaDB-0+deb12u1": {MariaDB, true}, "11.8.2-MariaDB": {MariaDB, true}, "10.5.0-MariaDB": {MariaDB, true},
		"10.4.34-MariaDB": {MariaDB, false}, "5.5.68-MariaDB": {MariaDB, false}, "MariaDB": {MariaDB, false},
		"8.4.3": {MySQL, false}, "9.1.0-commercial": {MySQL, false}, "": {MySQL, false},
	} {
		s := Server{Version: version}
		if s.Flavor() != want.flavor || s.hasDatabaseComments() != want.comments {
			t.Errorf("%q: %s, %v", version, s.Flavor(), s.hasDatabaseComments())
		}
	}
}

func TestMarks(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owner := Owner{"ns", "bench", "uid-1"}
	mark := owner.mark(created)
	if mark != "dbbench:ns/bench:uid-1:20260102T030405Z" {
		t.Errorf("mark %q", mark)
	}
	for other, want := range map[Owner]bool{
		owner: true, {"ns", "bench", "uid-2"}: true, {"elsewhere", "renamed", "uid-1"}: true,
		{"ns", "other", "uid-2"}: false, {"other", "bench", "uid-2"}: false,
	} {
		if other.owns(mark) != want {
			t.Errorf("%+v owns %q: %v", other, mark, !want)
		}
	}
	for _, comment := range []string{"", "dbbench", "dbbench:", "dbbench:ns/bench", "VIEW", "x" + mark, mark + ":more", "ns/bench:uid-1:x"} {
		if owner.owns(comment) {
			t.Errorf("a comment %q is taken for a mark", comment)
		}
	}
}

func TestQuoting(t *testing.T) {
	for in, want := range map[string]string{"a": "`a`", "a`b": "`a``b`", "a b-$": "`a b-$`"} {
		if got := quoteName(in); got != want {
			t.Errorf("name %q: %s", in, got)
		}
	}
	for in, want := range map[string]string{"": "''", "it's": "'it''s'", `a"b`: `'a"b'`, `C:\x`: `_utf8mb4 X'433A5C78'`} {
		if got := quoteText(in); got != want {
			t.Errorf("text %q: %s", in, got)
		}
	}
	got := sessionParams(map[string]string{"a": "5", "b": "-1.5", "c": "ON", "d": "1; DROP TABLE x", "e": ""})
	for name, want := range map[string]string{"a": "5", "b": "-1.5", "c": "'ON'", "d": "'1; DROP TABLE x'", "e": "''"} {
		if got[name] != want {
			t.Errorf("variable %s: %s", name, got[name])
		}
	}
}

func TestStatusSince(t *testing.T) {
	got := Status{"a": 5, "b": 7, "c": 1}.Since(Status{"a": 2, "b": 7})
	if len(got) != 2 || got["a"] != 3 || got["c"] != 1 {
		t.Errorf("got %v", got)
	}
}
