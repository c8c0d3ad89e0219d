package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driverpkg "github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/workload"
)

// fake is a workload without a server: its events are what a test makes of them.
type fake struct {
	need   workload.Requirements
	event  func(client int, n int64) (int, error) // n counts the client's events from 1
	action workload.Action
	opened atomic.Int64
	closed atomic.Int64
	events atomic.Int64
}

func (f *fake) Operations() []string { return []string{"a", "b"} }
func (f *fake) Requirements() workload.Requirements {
	need := f.need
	need.Sessions = max(need.Sessions, 1)
	return need
}
func (f *fake) Load(l contract.Load) contract.Load              { return l }
func (f *fake) Prepare(*workload.Env) error                     { return nil }
func (f *fake) Verify(*workload.Env) (map[string]string, error) { return nil, nil }
func (f *fake) OnError(error) workload.Action                   { return f.action }
func (f *fake) NewClient(i, _ int) workload.Client              { return &fakeClient{fake: f, index: i} }

type fakeClient struct {
	*fake
	index    int
	n        int64
	sessions []workload.Session
}

func (c *fakeClient) Open(sessions []workload.Session) error {
	c.sessions = sessions
	c.opened.Add(1)
	return nil
}

func (c *fakeClient) Event() (int, error) {
	c.n++
	c.events.Add(1)
	if c.event != nil {
		return c.event(c.index, c.n)
	}
	_, err := c.sessions[0].Exec("")
	return 0, err
}

func (c *fakeClient) Close() error { c.closed.Add(1); return nil }

// connection counts what an engine does with it.
type connection struct {
	workload.Session // what is not used
	ctx              context.Context
	pool             *pool
	stats            workload.Stats
}

func (c *connection) Exec(string) (workload.Result, error) {
	c.stats.Writes++
	return workload.Result{}, nil
}
func (c *connection) Stats() workload.Stats { return c.stats }
func (c *connection) Close() error          { c.pool.open.Add(-1); return nil }

type pool struct {
	open, peak, total atomic.Int64
	fail              func(n int64) error
	mu                sync.Mutex
	last              *connection
}

func (p *pool) connect(ctx context.Context, _ mysql.Transport) (Connection, error) {
	n := p.total.Add(1)
	if p.fail != nil {
		if err := p.fail(n); err != nil {
			return nil, err
		}
	}
	p.peak.Store(max(p.peak.Load(), p.open.Add(1)))
	c := &connection{ctx: ctx, pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = c
	return c, nil
}

// engines are those that there are here.
var engines = map[string]Engine{"goroutines": Goroutines{}, "default": Default()}

// forEach runs a test on each engine.
func forEach(t *testing.T, test func(t *testing.T, e Engine)) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) { test(t, e) })
	}
}

func drive(t *testing.T, e Engine, w *fake, p *pool, load contract.Load) Measurement {
	t.Helper()
	m := e.Run(t.Context(), &Job{Workload: w, Load: load, Connect: p.connect, Grace: time.Minute, Monitor: &Monitor{}})
	if open := p.open.Load(); open != 0 {
		t.Errorf("%d connections are open", open)
	}
	return m
}

func TestStopRules(t *testing.T) { forEach(t, stopRules) }

func stopRules(t *testing.T, e Engine) {
	for _, tt := range []struct {
		name string
		load contract.Load
		want int64
	}{
		{"per client", contract.Load{Clients: 5, EventsPerClient: 7}, 35},
		{"shared", contract.Load{Clients: 5, Events: 7}, 7},
		{"shared and per client, shared first", contract.Load{Clients: 5, Events: 7, EventsPerClient: 7}, 7},
		{"shared and per client, per client first", contract.Load{Clients: 5, Events: 100, EventsPerClient: 7}, 35},
	} {
		for _, inRun := range []bool{false, true} {
			w, p := &fake{need: workload.Requirements{ConnectInRun: inRun, Sessions: 2}}, &pool{}
			m := drive(t, e, w, p, tt.load)
			if m.Err != nil || m.Totals.Events != tt.want || w.events.Load() != tt.want || m.Attempts != tt.want {
				t.Errorf("%s: %v, %d events recorded, %d done, want %d", tt.name, m.Err, m.Totals.Events, w.events.Load(), tt.want)
			}
			if w.opened.Load() != 5 || w.closed.Load() != 5 || p.total.Load() != 10 || m.Statements.Writes != tt.want {
				t.Errorf("%s: %d opened, %d closed, %d connections, %+v", tt.name, w.opened.Load(), w.closed.Load(), p.total.Load(), m.Statements)
			}
		}
	}
}

// TestClientsThatAreDone: a client may end by itself, and the others go on.
func TestClientsThatAreDone(t *testing.T) { forEach(t, clientsThatAreDone) }

func clientsThatAreDone(t *testing.T, e Engine) {
	shares := func(client int, n int64) (int, error) {
		if n > int64(client) {
			return 0, workload.ErrDone
		}
		return 0, nil
	}
	for _, load := range []contract.Load{{Clients: 4}, {Clients: 4, Duration: contract.Duration(time.Minute)}, {Clients: 4, Events: 1000}} {
		w := &fake{event: shares}
		m := drive(t, e, w, &pool{}, load)
		if m.Err != nil || m.Totals.Events != 0+1+2+3 || m.Attempts != 6 || m.Totals.Errors != 0 || w.closed.Load() != 4 {
			t.Errorf("%+v: %+v, %d closed", load, m, w.closed.Load())
		}
	}
	// In the warm-up, too.
	w := &fake{event: shares}
	if m := drive(t, e, w, &pool{}, contract.Load{Clients: 4, Warmup: contract.Duration(time.Minute)}); m.Err != nil || m.Totals.Events != 0 {
		t.Errorf("%+v", m)
	}
}

func TestDurationAndWarmup(t *testing.T) { forEach(t, durationAndWarmup) }

func durationAndWarmup(t *testing.T, e Engine) {
	const step = 60 * time.Millisecond
	w := &fake{event: func(int, int64) (int, error) { time.Sleep(step / 20); return 1, nil }}
	phases := make(chan contract.Phase, 10)
	p := &pool{}
	began := time.Now()
	m := e.Run(t.Context(), &Job{
		Workload: w, Connect: p.connect, Grace: time.Second, Phase: func(p contract.Phase) { phases <- p },
		Load: contract.Load{Clients: 2, Duration: contract.Duration(2 * step), Warmup: contract.Duration(step)},
	})
	if m.Err != nil || m.Totals.Events == 0 || m.Totals.Events >= w.events.Load() {
		t.Errorf("%v, %d events recorded of %d", m.Err, m.Totals.Events, w.events.Load())
	}
	if m.Elapsed < 2*step || m.Start.Sub(began) < step {
		t.Errorf("measured for %s, %s after the start", m.Elapsed, m.Start.Sub(began))
	}
	if len(m.Operations) != 1 || m.Operations[0].Name != "b" || m.Operations[0].Count != m.Totals.Events {
		t.Errorf("operations %+v", m.Operations)
	}
	for _, want := range []contract.Phase{contract.PhaseConnect, contract.PhaseWarmup, contract.PhaseMeasure} {
		if got := <-phases; got != want {
			t.Errorf("phase %s, want %s", got, want)
		}
	}
}

func TestActions(t *testing.T) { forEach(t, actions) }

func actions(t *testing.T, e Engine) {
	deadlock := &driverpkg.MySQLError{Number: 1213}
	odd := func(_ int, n int64) (int, error) {
		if n%2 == 1 {
			return 0, deadlock
		}
		return 0, nil
	}
	load := contract.Load{Clients: 2, EventsPerClient: 10}

	m := drive(t, e, &fake{event: odd, action: workload.Skip}, &pool{}, load)
	if m.Err != nil || m.Totals.Events != 10 || m.Totals.Errors != 10 || m.Totals.ErrorsByNumber[1213] != 10 || m.Attempts != 20 || m.Retries != 0 {
		t.Errorf("skip: %+v", m)
	}
	m = drive(t, e, &fake{event: odd, action: workload.Retry}, &pool{}, load)
	if m.Err != nil || m.Totals.Events != 20 || m.Totals.Errors != 0 || m.Attempts != 40 || m.Retries != 20 {
		t.Errorf("retry: %+v", m)
	}
	w := &fake{event: odd, action: workload.Fail}
	m = drive(t, e, w, &pool{}, contract.Load{Clients: 3})
	if !errors.Is(m.Err, deadlock) || m.Totals.Errors < 1 || m.Totals.Events != 0 || w.closed.Load() != 0 {
		t.Errorf("fail: %+v, %d closed", m, w.closed.Load())
	}
}

func TestConnecting(t *testing.T) { forEach(t, connecting) }

func connecting(t *testing.T, e Engine) {
	denied := func(n int64) error {
		if n == 2 {
			return &driverpkg.MySQLError{Number: 1045}
		}
		return nil
	}
	for _, inRun := range []bool{false, true} {
		w := &fake{need: workload.Requirements{ConnectInRun: inRun}, event: func(int, int64) (int, error) { time.Sleep(time.Millisecond); return 0, nil }}
		p := &pool{fail: denied}
		m := drive(t, e, w, p, contract.Load{Clients: 2})
		var f *contract.Failure
		if !errors.As(m.Err, &f) || f.Class != contract.ClassAuthenticationFailed || p.total.Load() != 2 {
			t.Errorf("a server that refuses: %v after %d tries", m.Err, p.total.Load())
		}
		if !inRun && w.events.Load() != 0 {
			t.Error("clients began although one could not connect")
		}
	}
}

func TestContextEndsTheJob(t *testing.T) { forEach(t, contextEndsTheJob) }

func contextEndsTheJob(t *testing.T, e Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &pool{}
	w := &fake{event: func(client int, n int64) (int, error) {
		if n == 3 && client == 0 {
			cancel()
			// An event that does not end by itself: its connection is closed under it.
			p.mu.Lock()
			life := p.last.ctx
			p.mu.Unlock()
			<-life.Done()
			return 0, driver.ErrBadConn
		}
		time.Sleep(time.Millisecond)
		return 0, nil
	}}
	m := e.Run(ctx, &Job{Workload: w, Load: contract.Load{Clients: 2}, Connect: p.connect, Grace: 20 * time.Millisecond})
	if m.Err != nil || m.Totals.Errors != 0 || m.Totals.Events < 2 || p.open.Load() != 0 {
		t.Errorf("%+v, %d connections open", m, p.open.Load())
	}
	if w.closed.Load() != 0 {
		t.Error("clients that were stopped were asked to close")
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if m := e.Run(ended, &Job{Workload: &fake{}, Load: contract.Load{Clients: 2, EventsPerClient: 1 << 40}, Connect: p.connect}); m.Err != nil {
		t.Errorf("a job that was over before it began: %v", m.Err)
	}
}

func TestMonitor(t *testing.T) {
	var m Monitor
	var before contract.Progress
	m.Progress(time.Now(), &before)
	if before != (contract.Progress{}) {
		t.Errorf("before the start: %+v", before)
	}
	for _, tt := range []struct {
		load    contract.Load
		events  int64
		elapsed time.Duration
		want    int32
	}{
		{contract.Load{Clients: 1}, 10, time.Hour, -1},
		{contract.Load{Clients: 2, EventsPerClient: 10}, 5, 0, 25},
		{contract.Load{Clients: 2, Events: 10}, 5, 0, 50},
		{contract.Load{Clients: 2, Events: 10, Duration: contract.Duration(4 * time.Second)}, 5, 3 * time.Second, 75},
		{contract.Load{Clients: 2, Duration: contract.Duration(time.Second)}, 5, 3 * time.Second, 100},
		{contract.Load{Clients: 2, Duration: contract.Duration(time.Second)}, 0, -time.Second, 0},
	} {
		if got := percentDone(tt.load, tt.events, tt.elapsed); got != tt.want {
			t.Errorf("%+v, %d events, %s: %d %%, want %d", tt.load, tt.events, tt.elapsed, got, tt.want)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	for name, e := range engines {
		b.Run(name, func(b *testing.B) {
			w := &fake{event: func(int, int64) (int, error) { return 0, nil }}
			b.ReportAllocs()
			e.Run(b.Context(), &Job{Workload: w, Connect: (&pool{}).connect, Load: contract.Load{Clients: 1, EventsPerClient: int64(b.N)}})
		})
	}
}

func mysqlError(number uint16) error { return &driverpkg.MySQLError{Number: number} }
