//go:build linux

// Package mariadb starts private MariaDB and MySQL servers for tests and benchmarks: a data
// directory of its own, a unix socket, a port on the loopback interface, and an end
// with the process that started it.
package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The user that every server has beside root, with all privileges from anywhere. Root
// has no password and comes over the socket alone.
const (
	User     = "bench"
	Password = "s3cret:/@%?#'\"canary"
)

// Packages is how the programs are installed that this package runs.
const Packages = "apt-get update && apt-get install -y --no-install-recommends mariadb-server-core mariadb-client"

const (
	readyTime = 60 * time.Second
	stopTime  = 30 * time.Second
	// portTries is how often another port is tried; a free one may be taken before the
	// server has it.
	portTries = 3
)

// Server is a running server.
type Server struct {
	Host   string
	Port   int
	Socket string
	// Root is a connection pool of root.
	Root *sql.DB

	dir     string
	command *exec.Cmd
	exited  chan struct{}
}

// Start starts a server for a test and stops it with the test. Where the programs are
// not installed the test fails: a test against a server that is skipped says nothing.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	// The path of a unix socket is short: t.TempDir() may be too long.
	dir, err := os.MkdirTemp("", "mariadb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	fast := []string{"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"}
	s, err := New(dir, append(fast, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// New installs a data directory in dir and starts a server with the given options.
func New(dir string, options ...string) (*Server, error) {
	server, install, err := programs()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	// Servers that share a directory of temporary files have been seen to take each other's.
	args := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}
	if out, err := exec.Command(install, append(args, asRoot()...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return startOn([]string{server, "--no-defaults"}, dir, options)
}

// startOn starts a server on the data directory in dir, on a port that is free.
func startOn(program []string, dir string, options []string) (*Server, error) {
	for try := 1; ; try++ {
		s, err := start(program, dir, options)
		if err == nil || try == portTries {
			return s, err
		}
	}
}

func programs() (server, install string, err error) {
	server, err = exec.LookPath("mariadbd")
	if err != nil {
		server, err = exec.LookPath("/usr/sbin/mariadbd")
	}
	if err == nil {
		install, err = exec.LookPath("mariadb-install-db")
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: install MariaDB with: %s", err, Packages)
	}
	return server, install, nil
}

// asRoot lets the server run as root where that is who runs it.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

func start(program []string, dir string, options []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &Server{Host: "127.0.0.1", Port: port, Socket: filepath.Join(dir, "s"), dir: dir, exited: make(chan struct{})}
	args := slices.Concat(program, []string{
		"--datadir=" + filepath.Join(dir, "data"), "--socket=" + s.Socket, "--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port), "--pid-file=" + filepath.Join(dir, "pid"), "--tmpdir=" + dir, "--skip-log-bin", "--skip-name-resolve",
	}, asRoot(), options)
	s.command = exec.Command(args[0], args[1:]...)
	s.command.Stdout, s.command.Stderr = log, log
	// The server ends with this process, also where that is killed.
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.launch(); err != nil {
		return nil, err
	}
	if err := s.awaitReady(); err != nil {
		s.Kill()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("start the server: %w\n%s", err, text)
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// launch starts the process from a thread that lives as long as it: the death signal
// is sent when the thread ends, not the process.
func (s *Server) launch() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := s.command.Start()
		started <- err
		if err == nil {
			_ = s.command.Wait()
			close(s.exited)
		}
	}()
	return <-started
}

func (s *Server) awaitReady() error {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.MultiStatements = "root", "unix", s.Socket, true
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.Root = sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for {
		err := s.Root.PingContext(ctx)
		if err == nil {
			return s.createUser()
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.exited:
			return errors.New("the server has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// createUser quotes the password by doubling, which holds in every sql_mode.
func (s *Server) createUser() error {
	_, err := s.Root.Exec(fmt.Sprintf(`CREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s'; GRANT ALL ON *.* TO '%s'@'%%'`,
		User, strings.ReplaceAll(Password, "'", "''"), User))
	return err
}

// Stop ends the server in order.
func (s *Server) Stop() {
	_ = s.Root.Close()
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTime):
		s.Kill()
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	_ = s.command.Process.Kill()
	<-s.exited
}

// Exec runs statements as root.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := s.Root.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// Rows runs a query as root; NULL reads as "NULL".
func (s *Server) Rows(t testing.TB, query string) [][]string {
	t.Helper()
	rows, err := s.Root.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(columns))
		for i, v := range values {
			texts[i] = "NULL"
			if v.Valid {
				texts[i] = v.String
			}
		}
		out = append(out, texts)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Status reads counters of SHOW GLOBAL STATUS.
func (s *Server) Status(t testing.TB, names ...string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, name := range names {
		for _, r := range s.Rows(t, "SHOW GLOBAL STATUS LIKE '"+name+"'") {
			n, err := strconv.ParseInt(r[1], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", r[0], err)
			}
			out[r[0]] = n
		}
	}
	return out
}

// PID is the server's process.
func (s *Server) PID() int { return s.command.Process.Pid }
