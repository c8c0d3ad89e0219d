//go:build linux

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/workload"
	"dbbench.dev/operator/test/mariadb"
)

// table is what the clients of these tests work on.
const table = "CREATE TABLE dbbench.t (id INT AUTO_INCREMENT PRIMARY KEY, client INT, n INT, b LONGBLOB)"

// serve starts a server with the table and returns the ways to it.
func serve(t *testing.T, options ...string) (*mariadb.Server, map[string]contract.Target) {
	t.Helper()
	_, cert, key := mariadb.Certificates(t, "db.example")
	server := mariadb.Start(t, append([]string{"--ssl-cert=" + cert, "--ssl-key=" + key, "--max-allowed-packet=16M"}, options...)...)
	server.Exec(t, "CREATE DATABASE dbbench", table)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tcp := contract.Target{Host: server.Host, Port: int32(server.Port), Database: "dbbench", TLS: contract.TLS{Mode: contract.TLSDisabled},
		UsernameFile: write("username", mariadb.User), PasswordFile: write("password", mariadb.Password)}
	encrypted := tcp
	encrypted.TLS.Mode = contract.TLSRequired
	socket := tcp
	socket.Host, socket.Port, socket.Socket = "", 0, server.Socket
	return server, map[string]contract.Target{"tcp": tcp, "tls": encrypted, "socket": socket}
}

// connect is the Connect of a job.
func connect(t *testing.T, to contract.Target) func(context.Context, mysql.Transport) (Connection, error) {
	t.Helper()
	c, err := mysql.NewConnector(to)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, how mysql.Transport) (Connection, error) {
		return c.Open(ctx, mysql.SessionOptions{Database: "dbbench", Patient: true, Transport: how})
	}
}

// talk is a workload whose clients insert rows and read them again.
type talk struct {
	fake
	// event of a client.
	do func(c *talker) error
}

type talker struct {
	*talk
	index       int
	n           int64
	session     workload.Session
	insert, get workload.Handle
	args        []workload.Arg
}

func (w *talk) NewClient(i, _ int) workload.Client { return &talker{talk: w, index: i} }

func (c *talker) Open(sessions []workload.Session) error {
	c.session = sessions[0]
	return c.prepare()
}

func (c *talker) prepare() (err error) {
	if c.insert, err = c.session.Prepare("INSERT INTO t (client, n, b) VALUES (?, ?, ?)"); err != nil {
		return err
	}
	c.get, err = c.session.Prepare("SELECT b FROM t WHERE id = ?")
	return err
}

func (c *talker) Event() (int, error) {
	c.n++
	return 0, c.do(c)
}

func (c *talker) Close() error { return nil }

// echo inserts a row and reads it again.
func (c *talker) echo(b []byte) error {
	c.args = append(c.args[:0], workload.Int(int64(c.index)), workload.Int(c.n), workload.Bytes(b))
	r, err := c.session.ExecPrepared(c.insert, c.args)
	if err != nil {
		return err
	}
	var got []byte
	c.args = append(c.args[:0], workload.Int(r.InsertID))
	err = c.session.QueryPrepared(c.get, c.args, func(row workload.Row) error {
		got = row.Append(nil, 0)
		return nil
	})
	if err == nil && !bytes.Equal(got, b) {
		return fmt.Errorf("%d bytes came back of %d, or others", len(got), len(b))
	}
	return err
}

// TestOnAServer has the tests that follow share a server.
func TestOnAServer(t *testing.T) {
	server, targets := serve(t)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *mariadb.Server, map[string]contract.Target)
	}{
		{"all that a session can", allOverAllTransports},
		{"a server that is full for a moment", aServerThatIsFullForAMoment},
		{"killed connections", killedConnections},
		{"a server that hangs", aServerThatHangs},
		{"coordinated omission", coordinatedOmission},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, server, targets) })
	}
}

// allOverAllTransports has clients do all that a session can.
func allOverAllTransports(t *testing.T, server *mariadb.Server, targets map[string]contract.Target) {
	for _, via := range slices.Sorted(maps.Keys(targets)) {
		t.Run(via, func(t *testing.T) {
			forEach(t, func(t *testing.T, e Engine) {
				for _, inRun := range []bool{false, true} {
					server.Exec(t, "TRUNCATE dbbench.t")
					const clients, each = 7, 40
					w := &talk{fake: fake{need: workload.Requirements{ConnectInRun: inRun}}, do: allOfASession}
					m := e.Run(t.Context(), &Job{Workload: w, Connect: connect(t, targets[via]), Grace: time.Minute,
						Load: contract.Load{Clients: clients, EventsPerClient: each}})
					if m.Err != nil || m.Totals.Events != clients*each || m.Statements.Reconnects != clients*(each/10) {
						t.Errorf("%v, %d events, %+v", m.Err, m.Totals.Events, m.Statements)
					}
					if m.Statements.Writes != clients*each || m.Statements.Reads != 3*clients*each {
						t.Errorf("statements %+v", m.Statements)
					}
					want := [][]string{{fmt.Sprint(clients * each), fmt.Sprint(clients), fmt.Sprint(each)}}
					if got := server.Rows(t, "SELECT COUNT(*), COUNT(DISTINCT client), COUNT(DISTINCT n) FROM dbbench.t"); !slices.EqualFunc(got, want, slices.Equal) {
						t.Errorf("rows %v, want %v", got, want)
					}
				}
			})
		})
	}
}

// allOfASession is an event with an insert, three queries, and a reconnect in ten. One of
// the rows does not fit into the buffers of a socket.
func allOfASession(c *talker) error {
	size := 10 * c.n
	if c.index == 0 && c.n == 5 {
		size = 5 << 20
	}
	if err := c.echo(bytes.Repeat([]byte{byte(c.index), 'x'}, int(size))); err != nil {
		return err
	}
	// Twice: what is cached of a statement counts from the second time on.
	for range 2 {
		if err := c.session.QueryPrepared(c.get, c.args, nil); err != nil {
			return err
		}
	}
	if c.n%10 != 0 {
		return nil
	}
	if err := c.session.Reconnect(); err != nil {
		return err
	}
	return c.prepare()
}

// aServerThatIsFullForAMoment has the server refuse some until others are gone.
func aServerThatIsFullForAMoment(t *testing.T, server *mariadb.Server, targets map[string]contract.Target) {
	forEach(t, func(t *testing.T, e Engine) {
		server.Exec(t, "SET GLOBAL max_connections = 10")
		time.AfterFunc(300*time.Millisecond, func() { server.Exec(t, "SET GLOBAL max_connections = 151") })
		w := &talk{do: func(c *talker) error { return c.echo([]byte("x")) }}
		m := e.Run(t.Context(), &Job{Workload: w, Connect: connect(t, targets["tcp"]), Load: contract.Load{Clients: 30, EventsPerClient: 2}})
		if m.Err != nil || m.Totals.Events != 60 {
			t.Errorf("%v, %d events", m.Err, m.Totals.Events)
		}
	})
}

// killedConnections has the server close connections: the clients open others.
func killedConnections(t *testing.T, _ *mariadb.Server, targets map[string]contract.Target) {
	forEach(t, func(t *testing.T, e Engine) {
		w := &talk{fake: fake{action: workload.Retry}, do: func(c *talker) error {
			if c.n%5 == 0 && c.index%2 == 0 {
				_, _ = c.session.Exec("KILL CONNECTION_ID()") // it is gone before it can say so
			}
			err := c.echo([]byte("x"))
			if mysql.IsConnectionLost(err) {
				return errors.Join(err, c.session.Reconnect(), c.prepare())
			}
			return err
		}}
		m := e.Run(t.Context(), &Job{Workload: w, Connect: connect(t, targets["tcp"]), Load: contract.Load{Clients: 6, EventsPerClient: 20}})
		if m.Err != nil || m.Totals.Events != 120 || m.Retries == 0 || m.Retries != m.Statements.Reconnects {
			t.Errorf("%v, %d events, %d retries, %+v", m.Err, m.Totals.Events, m.Retries, m.Statements)
		}
	})
}

// stall stops the server's process for a while. What it returns lets it go on at once.
func stall(server *mariadb.Server, after, howLong time.Duration) (goOn func()) {
	signal := func(s syscall.Signal) func() { return func() { _ = syscall.Kill(server.PID(), s) } }
	stop, resume := time.AfterFunc(after, signal(syscall.SIGSTOP)), time.AfterFunc(after+howLong, signal(syscall.SIGCONT))
	return func() {
		stop.Stop()
		resume.Stop()
		signal(syscall.SIGCONT)()
	}
}

// aServerThatHangs must not hold the run: what was measured is kept.
func aServerThatHangs(t *testing.T, server *mariadb.Server, targets map[string]contract.Target) {
	for via, target := range targets {
		forEach(t, func(t *testing.T, e Engine) {
			signal := func(s syscall.Signal) { _ = syscall.Kill(server.PID(), s) }
			defer signal(syscall.SIGCONT)
			w := &talk{do: func(c *talker) error {
				if c.index == 0 && c.n == 20 {
					signal(syscall.SIGSTOP)
				}
				return c.echo([]byte("x"))
			}}
			began := time.Now()
			m := e.Run(t.Context(), &Job{Workload: w, Connect: connect(t, target), Grace: 500 * time.Millisecond,
				Load: contract.Load{Clients: 5, Duration: contract.Duration(time.Second)}})
			var f *contract.Failure
			if !errors.As(m.Err, &f) || f.Class != contract.ClassDeadlineExceeded || m.Totals.Events == 0 || m.Totals.Errors != 0 {
				t.Errorf("%s: %v, %+v", via, m.Err, m.Totals)
			}
			if took := time.Since(began); took > 10*time.Second { // much less, on an idle machine
				t.Errorf("%s: it took %s", via, took)
			}
		})
	}
}

// coordinatedOmission stops the server for a second. In an open loop the events that were
// to begin in that second count from when they were to, and a percentile tells; in a
// closed loop no client sends while it waits, and a few events alone are slow.
func coordinatedOmission(t *testing.T, _ *mariadb.Server, targets map[string]contract.Target) {
	const rate, seconds = 500, 10
	forEach(t, func(t *testing.T, e Engine) {
		t.Parallel()
		server := mariadb.Start(t) // each test stops one of its own
		server.Exec(t, "CREATE DATABASE dbbench", table)
		target := targets["socket"]
		target.Socket = server.Socket
		for _, arrivals := range []string{contract.ArrivalsPoisson, ""} {
			load := contract.Load{Clients: 20, Duration: contract.Duration(seconds * time.Second)}
			if arrivals != "" {
				load.Rate, load.Arrivals = rate, arrivals
			} else {
				load.Think = contract.Duration(20 * time.Millisecond) // some 1,000/s
				load.Duration = contract.Duration(5 * time.Second)
			}
			goOn := stall(server, time.Duration(load.Duration)/3, time.Second)
			w := &talk{do: func(c *talker) error { return c.session.Query("DO 0", nil) }}
			m := e.Run(t.Context(), &Job{Workload: w, Connect: connect(t, target), Grace: time.Minute, Load: load})
			goOn()
			if m.Err != nil || m.Totals.Errors > 0 {
				t.Fatalf("%v, %+v", m.Err, m.Totals)
			}
			p99 := quantile(t, m, 99)
			if load.Rate == 0 {
				t.Logf("closed loop: p99 %s, maximum %s", p99, time.Duration(m.Operations[0].MaxNanos))
				if time.Duration(m.Operations[0].MaxNanos) < 900*time.Millisecond {
					t.Errorf("closed loop: at most %s", time.Duration(m.Operations[0].MaxNanos))
				}
				continue
			}
			if n := m.Totals.Events + m.Totals.Dropped; p99 < 500*time.Millisecond || n < rate*seconds*9/10 || n > rate*seconds*11/10 {
				t.Errorf("open loop: p99 %s, %+v", p99, m.Totals)
			}
			if m.Totals.Late < rate*8/10 {
				t.Errorf("%d late", m.Totals.Late)
			}
		}
	})
}

func quantile(t *testing.T, m Measurement, q float64) time.Duration {
	t.Helper()
	h, err := hdr.Decode([]byte(m.Operations[0].Histogram))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(h.ValueAtQuantile(q))
}
