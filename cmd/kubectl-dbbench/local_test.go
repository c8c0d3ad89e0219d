//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/test/mariadb"
)

// secretFile writes a file that a test gives to a command.
func secretFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// databases are those of a server that are not its own.
func databases(t *testing.T, s *mariadb.Server) string {
	t.Helper()
	var names []string
	for _, row := range s.Rows(t, "SHOW DATABASES") {
		switch row[0] {
		case "information_schema", "mysql", "performance_schema", "sys":
		default:
			names = append(names, row[0])
		}
	}
	return strings.Join(names, " ")
}

func TestLocal(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	s := mariadb.Start(t)
	password := secretFile(t, "password", mariadb.Password+"\n")
	quoted := strings.NewReplacer(`\`, `\\`).Replace(mariadb.Password)
	defaults := secretFile(t, "my.cnf", fmt.Sprintf("[mysqld]\nport=1\n[client]\nuser = %s\npassword = '%s'\nsocket=%s\n", mariadb.User, quoted, s.Socket))
	tcp := fmt.Sprintf("%s:%d", s.Host, s.Port)

	for name, flags := range map[string][]string{
		"host":     {"--host", tcp, "--username", mariadb.User, "--password-file", password},
		"target":   {"--host", "mariadb=" + tcp, "--host", "127.0.0.1:1", "--username", mariadb.User, "--password-file", password},
		"socket":   {"--socket", s.Socket, "--username", mariadb.User, "--password-file", password},
		"defaults": {"--defaults-file", defaults},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.Status(t, "Com_insert")["Com_insert"]
			o := dbbench(t.Context(), "", append([]string{"run", "--local", "-f", "testdata/bench.yaml"}, flags...)...)
			if o.code != exitOK {
				t.Fatalf("%+v", o)
			}
			for _, want := range []string{"nightly: Complete\n", "|                         4 | 0."} {
				if !strings.Contains(o.stdout, want) {
					t.Errorf("no %q in\n%s", want, o.stdout)
				}
			}
			if !strings.HasSuffix(o.stderr, "nightly: Complete, 8 of 8 runs done: all 8 runs succeeded\n") {
				t.Errorf("progress:\n%s", o.stderr)
			}
			// 2 iterations of 1×100, 1×1000, 4×100 and 4×1000 statements.
			if n := s.Status(t, "Com_insert")["Com_insert"] - before; n < 11000 {
				t.Errorf("the server has seen %d inserts, want 11000", n)
			}
			if left := databases(t, s); left != "" {
				t.Errorf("databases left: %s", left)
			}
			if strings.Contains(o.stdout+o.stderr, mariadb.Password) {
				t.Error("the password is in the output")
			}
		})
	}
}

func TestLocalFails(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	s := mariadb.Start(t)
	s.Exec(t, "CREATE DATABASE dbbench")
	password := secretFile(t, "password", mariadb.Password)
	wrong := secretFile(t, "wrong", "not-it")
	base := []string{"run", "--local", "-f", "testdata/bench.yaml", "--socket", s.Socket, "--username", mariadb.User}
	for _, c := range []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"--password-file", wrong}, exitFailed, "AuthenticationFailed"},
		{[]string{"--password-file", password}, exitFailed, "DatabaseNotOwned"},
		{[]string{"--password-file", "/nonexistent/password"}, exitError, "no such file"},
		{[]string{"--password-file", password, "--host", "127.0.0.1"}, exitUsage, "exclude each other"},
	} {
		o := dbbench(t.Context(), "", append(base, c.flags...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%v: %+v", c.flags, o)
		}
		if strings.Contains(o.stdout+o.stderr, "not-it") {
			t.Error("the password is in the output")
		}
	}
	if left := databases(t, s); left != "dbbench" {
		t.Errorf("databases left: %s", left)
	}
}

// TestLocalInterrupted: the run under way ends and leaves nothing behind.
func TestLocalInterrupted(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	s := mariadb.Start(t)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		for s.Status(t, "Com_insert")["Com_insert"]+s.Status(t, "Com_select")["Com_select"] < 100 {
			time.Sleep(10 * time.Millisecond)
		}
		interrupt()
	}()
	o := dbbench(ctx, "", "run", "--local", "-f", "testdata/timed.yaml", "--socket", s.Socket,
		"--username", mariadb.User, "--password-file", secretFile(t, "password", mariadb.Password))
	if o.code != exitInterrupted || !strings.Contains(o.stderr, "Interrupted") {
		t.Errorf("%+v", o)
	}
	if left := databases(t, s); left != "" {
		t.Errorf("databases left: %s", left)
	}
}

// TestLocalBaseline: a result that was kept is what thresholds are held against.
func TestLocalBaseline(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	s := mariadb.Start(t)
	text, err := os.ReadFile("testdata/timed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec := strings.Replace(string(text), "duration: 90s, warmup: 10s", "events: 200", 1) +
		"  baseline: {previous: true}\n  thresholds:\n  - {metric: throughput, minRatio: \"1000\", to: Baseline}\n"
	args := []string{"run", "--local", "-f", "-", "-o", "json", "--socket", s.Socket,
		"--username", mariadb.User, "--password-file", secretFile(t, "password", mariadb.Password)}
	first := dbbench(t.Context(), spec, args...)
	if first.code != exitOK {
		t.Fatalf("without a baseline: %+v", first)
	}
	kept := secretFile(t, "kept.json", first.stdout)
	if o := dbbench(t.Context(), spec, append(args, "--baseline", kept)...); o.code != exitNotPassed || !strings.Contains(o.stderr, "less than 1000") {
		t.Errorf("with one: %+v", o)
	}
}
