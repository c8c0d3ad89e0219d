//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// TestPreflight has the runner refuse what cannot work, before any load, with words
// that name the field or the variable and the fix.
func TestPreflight(t *testing.T) {
	server := mariadb.Start(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().(*net.TCPAddr).Port
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		name    string
		global  string // a variable that is set for the test
		limit   bool   // whether the account is limited for the test
		change  func(*contract.RunSpec)
		class   contract.Class
		number  uint16
		message string // part of message or hint
	}{
		{name: "unknown host", change: func(s *contract.RunSpec) { s.Target.Host = "nowhere.invalid" },
			class: contract.ClassTargetUnreachable, message: `"nowhere.invalid" cannot be resolved`},
		{name: "refused port", change: func(s *contract.RunSpec) { s.Target.Port = int32(refused) },
			class: contract.ClassTargetUnreachable, message: "nothing listens there"},
		{name: "no such socket", change: func(s *contract.RunSpec) { s.Target.Host, s.Target.Socket = "", "/nowhere/s" },
			class: contract.ClassTargetUnreachable, message: "cannot be reached"},
		{name: "wrong password", change: func(s *contract.RunSpec) { s.Target.PasswordFile = s.Target.UsernameFile },
			class: contract.ClassAuthenticationFailed, number: 1045, message: "credentialsSecretRef"},
		{name: "no password file", change: func(s *contract.RunSpec) { s.Target.PasswordFile = "/nowhere/password" },
			class: contract.ClassAuthenticationFailed, message: "the password cannot be read"},
		{name: "TLS that the server lacks", change: func(s *contract.RunSpec) { s.Target.TLS.Mode = contract.TLSRequired },
			class: contract.ClassTLSFailed, message: "does not offer TLS"},
		{name: "unknown session variable", change: func(s *contract.RunSpec) { s.Target.SessionVariables = map[string]string{"no_such": "1"} },
			class: contract.ClassPreflightFailed, number: 1193, message: "sessionVariables"},
		{name: "unknown engine", change: func(s *contract.RunSpec) { s.Workload.Slap.Engine = "Falcon" },
			class: contract.ClassPreflightFailed, message: "spec.workload.slap.engine"},
		{name: "max_connections", global: "max_connections=20", change: func(s *contract.RunSpec) { s.Load.Clients = 20 },
			class: contract.ClassPreflightFailed, message: "load.clients is 20"},
		{name: "max_connections, some in use", global: "max_connections=20", change: func(s *contract.RunSpec) { s.Load.Clients = 19 },
			class: contract.ClassPreflightFailed, message: "of which 1 are in use"}, // by this test
		{name: "two connections each", global: "max_connections=20", change: func(s *contract.RunSpec) {
			s.Workload, s.Load.Clients, s.Prepare = linkBenchSpec(t, server).Workload, 10, contract.PreparePerRun
		}, class: contract.ClassPreflightFailed, message: "takes 21 connections"},
		{name: "prepared statements", global: "max_prepared_stmt_count=39", change: func(s *contract.RunSpec) {
			s.Workload, s.Load.Clients, s.Prepare = oltpSpec(t, server, contract.OLTPReadWrite).Workload, 2, contract.PreparePerRun
		}, class: contract.ClassPreflightFailed, message: "takes 40 prepared statements, but the server's max_prepared_stmt_count is 39"},
		{name: "max_user_connections", limit: true, change: func(s *contract.RunSpec) { s.Load.Clients = 5 },
			class: contract.ClassPreflightFailed, message: "max_user_connections is 5"},
		{name: "read-only", global: "read_only=1", change: func(*contract.RunSpec) {},
			class: contract.ClassPreflightFailed, message: "read-only"},
		{name: "read-only transactions", global: "tx_read_only=1", change: func(*contract.RunSpec) {},
			class: contract.ClassPreflightFailed, message: "tx_read_only is ON"},
		{name: "enforced engine", global: "enforce_storage_engine=MyISAM", change: func(s *contract.RunSpec) { s.Workload.Slap.Engine = "InnoDB" },
			class: contract.ClassPreflightFailed, message: "enforce_storage_engine"},
		{name: "more than the memory holds", global: "max_heap_table_size=16384", change: func(s *contract.RunSpec) {
			s.Workload, s.Prepare = oltpSpec(t, server, contract.OLTPReadWrite).Workload, contract.PreparePerRun
			s.Workload.OLTP.Engine = "MEMORY"
		}, class: contract.ClassPreflightFailed, message: "spec.workload.oltp.engine: a table of about 188000 bytes does not fit"},
		{name: "a large value", global: "max_allowed_packet=1048576", change: func(s *contract.RunSpec) {
			s.Workload = payloadSpec(t, server, contract.PayloadInsert).Workload
			s.Workload.Payload.Size = 1 << 20
		}, class: contract.ClassPreflightFailed, message: "packets of 1048576 bytes, but the server's max_allowed_packet is 1048576"},
		{name: "primary key demanded", global: "innodb_force_primary_key=1", change: func(*contract.RunSpec) {},
			class: contract.ClassPreflightFailed, message: "guidPrimary"},
		{name: "packet", global: "max_allowed_packet=16384", change: func(s *contract.RunSpec) { s.Workload.Slap.CharColumns = 150 },
			class: contract.ClassPreflightFailed, message: "max_allowed_packet"},
		{name: "no key to look up", change: func(s *contract.RunSpec) {
			s.Workload.Slap.LoadType, s.Workload.Slap.AutoIncrement, s.Workload.Slap.PreloadRows = contract.SlapKey, true, 1
		}, class: contract.ClassInvalidRunSpec, message: "preloadRows"},
		{name: "more columns than the engine takes", change: func(s *contract.RunSpec) { s.Workload.Slap.CharColumns = 900 },
			class: contract.ClassPrepareFailed, number: 1118, message: "lower the column counts"},
		{name: "replicas", change: func(s *contract.RunSpec) { s.Replicas, s.Load.Clients = 2, 2 },
			class: contract.ClassInvalidRunSpec, message: "where they meet"},
		{name: "prepare", change: func(s *contract.RunSpec) { s.Prepare = contract.PrepareNever },
			class: contract.ClassInvalidRunSpec, message: "spec.prepare"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.global != "" {
				variable, _, _ := strings.Cut(tt.global, "=")
				before := server.Rows(t, "SELECT @@global."+variable)[0][0]
				server.Exec(t, "SET GLOBAL "+tt.global)
				defer server.Exec(t, "SET GLOBAL "+variable+"="+before)
			}
			if tt.limit {
				server.Exec(t, "ALTER USER "+mariadb.User+"@'%' WITH MAX_USER_CONNECTIONS 5")
				defer server.Exec(t, "ALTER USER "+mariadb.User+"@'%' WITH MAX_USER_CONNECTIONS 0")
			}
			spec := slapSpec(t, server)
			tt.change(&spec)
			o := runSpec(t, spec)
			f := mustFail(t, o, tt.class)
			if f.MySQLError != tt.number || !strings.Contains(f.Error(), tt.message) {
				t.Errorf("got %+v, want number %d and %q in it", f, tt.number, tt.message)
			}
			if o.record.Result.Events != 0 || len(o.record.Operations) != 0 {
				t.Errorf("there was a load: %+v", o.record.Result)
			}
			if rows := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(rows) != 0 {
				t.Error("a database is left")
			}
		})
	}
}

// TestPrivilegesForTables: what a workload does beyond reading and writing is tried, too.
func TestPrivilegesForTables(t *testing.T) {
	server := mariadb.Start(t)
	server.Exec(t, "CREATE USER poor@'%' IDENTIFIED BY 'poor'", "CREATE DATABASE shared",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP ON shared.* TO poor@'%'")
	partitioned := linkBenchSpec(t, server).Workload
	partitioned.LinkBench.Partitions = 2
	locking := oltpSpec(t, server, contract.OLTPReadWrite).Workload
	locking.OLTP.Compat, locking.OLTP.Engine, locking.OLTP.CreateSecondary = contract.Sysbench05, "MyISAM", false
	for _, tt := range []struct {
		grant    string
		workload contract.Workload
		number   uint16
	}{
		{"INDEX", oltpSpec(t, server, contract.OLTPReadWrite).Workload, 1142},
		{"LOCK TABLES", locking, 1044},
		{"ALTER", partitioned, 1142},
	} {
		t.Run(tt.grant, func(t *testing.T) {
			spec := slapSpec(t, server)
			for _, path := range []string{spec.Target.UsernameFile, spec.Target.PasswordFile} {
				if err := os.WriteFile(path, []byte("poor"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			spec.Workload, spec.Load = tt.workload, contract.Load{Clients: 1, EventsPerClient: 1}
			spec.Target.Database, spec.Target.AllowExistingDatabase = "shared", true
			o := runSpec(t, spec)
			f := mustFail(t, o, contract.ClassPreflightFailed)
			if f.MySQLError != tt.number || !strings.Contains(f.Hint, "GRANT") || strings.Contains(o.stdout, string(contract.PhasePrepare)) {
				t.Errorf("got %+v", f)
			}
			server.Exec(t, "GRANT "+tt.grant+" ON shared.* TO poor@'%'")
			mustSucceed(t, spec)
		})
	}
}

func TestPrivileges(t *testing.T) {
	server := mariadb.Start(t)
	server.Exec(t, "CREATE USER poor@'%' IDENTIFIED BY 'poor'", "CREATE DATABASE shared")
	for i, tt := range []struct {
		grant  string
		number uint16 // 0: the run succeeds
	}{
		{"", 1044},
		{"GRANT SELECT, INSERT ON shared.* TO poor@'%'", 1142},
		{"GRANT SELECT, INSERT, CREATE, DROP ON shared.* TO poor@'%'", 1142}, // no UPDATE
		{"GRANT UPDATE ON shared.* TO poor@'%'", 0},
	} {
		if tt.grant != "" {
			server.Exec(t, tt.grant)
		}
		spec := slapSpec(t, server)
		for _, path := range []string{spec.Target.UsernameFile, spec.Target.PasswordFile} {
			if err := os.WriteFile(path, []byte("poor"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		spec.Target.Database, spec.Target.AllowExistingDatabase = "shared", true
		spec.Workload.Slap.LoadType, spec.Workload.Slap.GUIDPrimary = contract.SlapUpdate, true
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if tt.number == 0 {
				mustSucceed(t, spec)
			} else if f := mustFail(t, runSpec(t, spec), contract.ClassPreflightFailed); f.MySQLError != tt.number || !strings.Contains(f.Hint, "GRANT") {
				t.Errorf("got %+v, want number %d", f, tt.number)
			}
			if left := server.Rows(t, "SHOW TABLES FROM shared"); len(left) != 0 && tt.number == 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
