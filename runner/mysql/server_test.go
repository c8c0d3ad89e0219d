//go:build linux

package mysql

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload"
	"dbbench.dev/operator/test/mariadb"
)

func target(t *testing.T, s *mariadb.Server) contract.Target {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return contract.Target{Host: s.Host, Port: int32(s.Port), Database: "dbbench", TLS: contract.TLS{Mode: contract.TLSPreferred},
		UsernameFile: write("username", mariadb.User), PasswordFile: write("password", mariadb.Password)}
}

func open(t *testing.T, target contract.Target, options SessionOptions) (*Session, error) {
	t.Helper()
	c, err := NewConnector(target)
	if err != nil {
		return nil, err
	}
	s, err := c.Open(t.Context(), options)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func mustOpen(t *testing.T, target contract.Target, options SessionOptions) *Session {
	t.Helper()
	s, err := open(t, target, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSession(t *testing.T) {
	server := mariadb.Start(t)
	server.Exec(t, "CREATE DATABASE dbbench", "CREATE TABLE dbbench.t (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(20), b VARBINARY(20))")
	for _, blocking := range []bool{false, true} {
		server.Exec(t, "TRUNCATE dbbench.t")
		s := mustOpen(t, target(t, server), SessionOptions{Database: "dbbench", MultiStatements: true, Transport: Transport{Blocking: blocking}})

		insert, err := s.Prepare("INSERT INTO t (n, s, b) VALUES (?, ?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		args := make([]workload.Arg, 3)
		for i := range int64(3) {
			args[0], args[1], args[2] = workload.Int(i*10), workload.Text("ä"), workload.Bytes([]byte{0, 255})
			if i == 2 {
				args[1] = workload.Arg{}
			}
			r, err := s.ExecPrepared(insert, args)
			if err != nil || r.Affected != 1 || r.InsertID != i+1 {
				t.Fatalf("insert %d: %+v, %v", i, r, err)
			}
		}
		get, err := s.Prepare("SELECT n, s, b FROM t WHERE id >= ? ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		collect := func(row workload.Row) error {
			var line []byte
			for i := range row {
				line = append(row.Append(line, i), '|')
			}
			rows = append(rows, string(line))
			return nil
		}
		if err := s.QueryPrepared(get, []workload.Arg{workload.Int(2)}, collect); err != nil {
			t.Fatal(err)
		}
		if err := s.Query("SELECT n, s, b FROM t WHERE id = 1; SELECT 7; DO 0", collect); err != nil {
			t.Fatal(err)
		}
		if want := []string{"10|ä|\x00\xff|", "20||\x00\xff|", "0|ä|\x00\xff|", "7|"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}

		// An error of the callback ends the query, and the connection takes another one.
		stop := errors.New("enough")
		if err := s.QueryPrepared(get, []workload.Arg{workload.Int(1)}, func(workload.Row) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("the callback's error: %v", err)
		}
		if err := s.QueryPrepared(get, []workload.Arg{workload.Int(1)}, nil); err != nil {
			t.Errorf("rows that are dropped: %v", err)
		}
		if err := s.Query("SELECT * FROM nowhere", nil); Number(err) != 1146 || IsConnectionLost(err) {
			t.Errorf("an unknown table: %v", err)
		}
		if r, err := s.Exec("UPDATE t SET n = n + 1 WHERE id < 3; DO 0; UPDATE t SET n = 0 WHERE id = 3"); err != nil || r.Affected != 1 {
			t.Errorf("the last of several statements: %+v, %v", r, err)
		}
		// 3 INSERTs and the UPDATE; 3 queries that gave rows to their end; the failed
		// callback's query counts as failed.
		if got := s.Stats(); got != (workload.Stats{Reads: 3, Writes: 4}) {
			t.Errorf("stats %+v", got)
		}
		if err := s.Reconnect(); err != nil {
			t.Fatal(err)
		}
		if err := s.Query("SELECT 1", nil); err != nil || s.Stats().Reconnects != 1 {
			t.Errorf("after a reconnect: %v, %+v", err, s.Stats())
		}
	}
}

func TestTheEndOfTheContextEndsACall(t *testing.T) {
	server := mariadb.Start(t)
	for _, blocking := range []bool{false, true} {
		c, err := NewConnector(target(t, server))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s, err := c.Open(ctx, SessionOptions{Transport: Transport{Blocking: blocking}})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() { failed <- s.Query("SELECT SLEEP(30)", nil) }()
		time.Sleep(50 * time.Millisecond)
		cancel()
		select {
		case err := <-failed:
			if !IsConnectionLost(err) {
				t.Errorf("blocking %v: %v", blocking, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("blocking %v: the call goes on", blocking)
		}
		if err := s.Reconnect(); err == nil {
			t.Error("a session that has ended reconnects")
		}
		_ = s.Close()
	}
}

// TestSilentServer connects to something that never answers.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	to := contract.Target{Host: "127.0.0.1", Port: int32(listener.Addr().(*net.TCPAddr).Port), UsernameFile: os.DevNull, PasswordFile: os.DevNull,
		TLS: contract.TLS{Mode: contract.TLSPreferred}}
	_, err = open(t, to, SessionOptions{})
	if err == nil {
		t.Fatal("connected")
	}
	if f := FailureOf(err, contract.ClassRunnerError); f.Class != contract.ClassTargetUnreachable || !strings.Contains(f.Message, "did not answer") {
		t.Errorf("got %+v", f)
	}
}

func TestTLSModes(t *testing.T) {
	ca, cert, key := mariadb.Certificates(t, "db.example")
	otherCA, _, _ := mariadb.Certificates(t, "db.example")
	server := mariadb.Start(t, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key)
	// What a Go client does not speak: the handshake fails.
	old := mariadb.Start(t, "--ssl-ca="+ca, "--ssl-cert="+cert, "--ssl-key="+key, "--tls-version=TLSv1.1")
	plain := mariadb.Start(t)

	for _, tt := range []struct {
		name   string
		server *mariadb.Server
		tls    contract.TLS
		cipher bool   // whether the session is encrypted
		fails  string // part of the failure
	}{
		{"disabled", server, contract.TLS{Mode: contract.TLSDisabled}, false, ""},
		{"preferred", server, contract.TLS{Mode: contract.TLSPreferred}, true, ""},
		{"preferred, none offered", plain, contract.TLS{Mode: contract.TLSPreferred}, false, ""},
		{"preferred, what is offered does not work", old, contract.TLS{Mode: contract.TLSPreferred}, false, ""},
		{"required", server, contract.TLS{Mode: contract.TLSRequired}, true, ""},
		{"required, none offered", plain, contract.TLS{Mode: contract.TLSRequired}, false, "does not offer TLS"},
		{"required, what is offered does not work", old, contract.TLS{Mode: contract.TLSRequired}, false, "handshake failed"},
		{"the authority is checked, the name is not", server, contract.TLS{Mode: contract.TLSVerifyCA, CAFile: ca}, true, ""},
		{"another authority", server, contract.TLS{Mode: contract.TLSVerifyCA, CAFile: otherCA}, false, "caSecretRef"},
		{"the name is checked", server, contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: ca}, false, "serverName"},
		{"the name is given", server, contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: ca, ServerName: "db.example"}, true, ""},
		{"the name is right, the authority is not", server, contract.TLS{Mode: contract.TLSVerifyIdentity, CAFile: otherCA, ServerName: "db.example"}, false, "caSecretRef"},
		{"no authority", server, contract.TLS{Mode: contract.TLSVerifyCA, CAFile: "/nowhere"}, false, "cannot be read"},
		{"an authority that is none", server, contract.TLS{Mode: contract.TLSVerifyCA, CAFile: key}, false, "no certificate"},
		{"a client certificate", server, contract.TLS{Mode: contract.TLSRequired, CertFile: cert, KeyFile: key}, true, ""},
		{"a client certificate without its key", server, contract.TLS{Mode: contract.TLSRequired, CertFile: cert, KeyFile: ca}, false, "client certificate"},
	} {
		for _, blocking := range []bool{false, true} {
			to := target(t, tt.server)
			to.TLS = tt.tls
			s, err := open(t, to, SessionOptions{Transport: Transport{Blocking: blocking}})
			if tt.fails != "" {
				if err == nil {
					t.Errorf("%s: connected", tt.name)
				} else if f := FailureOf(err, contract.ClassRunnerError); f.Class != contract.ClassTLSFailed || !strings.Contains(f.Error(), tt.fails) {
					t.Errorf("%s: got %+v, want %q", tt.name, f, tt.fails)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			rows, err := s.table("SHOW STATUS LIKE 'Ssl_cipher'")
			if err != nil || (rows[0][1] != "") != tt.cipher {
				t.Errorf("%s: cipher %v, %v", tt.name, rows, err)
			}
		}
	}
}

// TestMarkOfATable has the guard work as on a server whose databases have no comments.
func TestMarkOfATable(t *testing.T) {
	server := mariadb.Start(t)
	to := target(t, server)
	guard := func(benchmark string) *Guard {
		s := mustOpen(t, to, SessionOptions{})
		g := NewGuard(s, Server{Version: "8.4.0"}, contract.Run{Namespace: "ns", Benchmark: benchmark, BenchmarkUID: "uid-" + benchmark}, to)
		if g.comment {
			t.Fatal("MySQL has comments of databases")
		}
		return g
	}
	mine := guard("mine")
	if err := mine.Acquire([]string{"t1"}); err != nil {
		t.Fatal(err)
	}
	if got := server.Rows(t, "SELECT table_comment FROM information_schema.tables WHERE table_name = '_dbbench_owner'"); len(got) != 1 || !strings.HasPrefix(got[0][0], "dbbench:ns/mine:uid-mine:") {
		t.Errorf("marks %v", got)
	}
	if err := mine.Create("t1", "(id INT PRIMARY KEY)", "", "InnoDB"); err != nil {
		t.Fatal(err)
	}
	if owned, err := mine.Owned("t1"); err != nil || !owned {
		t.Errorf("t1 is ours: %v, %v", owned, err)
	}
	if err := guard("mine").Acquire([]string{"t1"}); err != nil {
		t.Errorf("a second run: %v", err)
	}
	var f *contract.Failure
	if err := guard("yours").Acquire(nil); !errors.As(err, &f) || f.Class != contract.ClassDatabaseNotOwned {
		t.Errorf("another benchmark: %v", err)
	}
	if left, err := guard("yours").Release(); err != nil || len(left) != 0 {
		t.Errorf("another benchmark's release: %v, %v", left, err)
	}
	if got := server.Rows(t, "SHOW TABLES FROM dbbench"); len(got) != 2 {
		t.Errorf("tables %v", got)
	}
	if left, err := mine.Release(); err != nil || len(left) != 0 {
		t.Errorf("release: %v, %v", left, err)
	}
	if got := server.Rows(t, "SHOW DATABASES LIKE 'dbbench'"); len(got) != 0 {
		t.Error("the database is still there")
	}
}

func TestASubstitutedEngineIsRefused(t *testing.T) {
	server := mariadb.Start(t, "--sql-mode=")
	to := target(t, server)
	g := NewGuard(mustOpen(t, to, SessionOptions{}), Server{Version: "10.11.19-MariaDB"}, contract.Run{Namespace: "ns", Benchmark: "b", BenchmarkUID: "u"}, to)
	if err := g.Acquire(nil); err != nil {
		t.Fatal(err)
	}
	var f *contract.Failure
	if err := g.Create("t1", "(id INT)", "ENGINE = NoSuchEngine", "NoSuchEngine"); !errors.As(err, &f) || !strings.Contains(f.Message, "in place of NoSuchEngine") {
		t.Errorf("got %v", err)
	}
	if err := g.Create("t1", "(id INT)", "ENGINE = HEAP", "HEAP"); err != nil {
		t.Errorf("an alias: %v", err)
	}
}
