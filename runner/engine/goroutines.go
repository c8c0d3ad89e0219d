package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/measure"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/workload"
)

// A client tries as often to connect as mysqlslap's does, where the error may pass.
const (
	connectTries = 10
	connectPause = 100 * time.Millisecond
	// connectsAtOnce bounds the rush on a server before the release.
	connectsAtOnce = 64
	// yieldAfter is the time in nanoseconds after which a client yields by itself. One
	// that has not for 10 ms is preempted by the Go runtime, which also takes its P away
	// while it waits for the server, and then watches all clients at a cost of a quarter
	// of the runner's CPU.
	yieldAfter = int64(8 * time.Millisecond)
)

// Goroutines drives each client on a goroutine of its own, in a closed loop: a client
// starts its next event as soon as the last has ended.
type Goroutines struct{}

// run is the state of one job.
type run struct {
	*Job
	recorder  *measure.Recorder
	inRun     bool // clients connect after their release
	perClient int  // sessions

	epoch    time.Time // start of the measured part; set before the release
	duration int64     // of the measured part in nanoseconds, 0 is no limit
	released chan struct{}
	claimed  atomic.Int64 // events of Load.Events
	stopped  atomic.Bool

	// life ends when the connections are to be closed under their calls.
	life context.Context
	kill context.CancelFunc

	mu  sync.Mutex
	err error
}

// Run is part of Engine.
func (Goroutines) Run(ctx context.Context, job *Job) Measurement {
	need := job.Workload.Requirements()
	r := &run{
		Job: job, recorder: measure.NewRecorder(job.Workload.Operations()),
		inRun: need.ConnectInRun, perClient: need.Sessions,
		duration: int64(job.Load.Duration), released: make(chan struct{}),
	}
	// The connections outlive ctx by the grace.
	r.life, r.kill = context.WithCancel(context.WithoutCancel(ctx))
	defer r.kill()
	defer context.AfterFunc(ctx, r.stopGracefully)()

	clients := make([]*client, job.Load.Clients)
	total := max(job.Total, len(clients))
	for i := range clients {
		clients[i] = &client{run: r, work: job.Workload.NewClient(job.First+i, total), samples: r.recorder.NewClient()}
	}
	r.drive(clients)
	return r.measurement(clients)
}

// drive takes the clients from their connection to their end.
func (r *run) drive(clients []*client) {
	r.phase(contract.PhaseConnect)
	var ready, done sync.WaitGroup
	turns := make(chan struct{}, connectsAtOnce)
	for _, c := range clients {
		ready.Add(1)
		done.Go(func() {
			turns <- struct{}{}
			c.prepare()
			<-turns
			ready.Done()
			<-r.released
			c.live()
		})
	}
	ready.Wait()
	if r.Ready != nil && !r.stopped.Load() {
		if err := r.Ready(r.life); err != nil {
			r.fail(err)
		}
	}
	r.release()
	done.Wait()
}

// release starts the clock and lets all clients go.
func (r *run) release() {
	warmup := time.Duration(r.Load.Warmup)
	if warmup > 0 {
		r.phase(contract.PhaseWarmup)
		timer := time.AfterFunc(warmup, func() { r.phase(contract.PhaseMeasure) })
		context.AfterFunc(r.life, func() { timer.Stop() })
	} else {
		r.phase(contract.PhaseMeasure)
	}
	r.epoch = time.Now().Add(warmup)
	r.Monitor.watch(r.epoch, r.Load, r.recorder)
	close(r.released)
}

func (r *run) phase(p contract.Phase) {
	if r.Phase != nil && !r.stopped.Load() {
		r.Phase(p)
	}
}

// now is the time since the measured part began, negative in the warm-up.
func (r *run) now() int64 { return int64(time.Since(r.epoch)) }

// stopGracefully lets clients finish their event, and closes the connections of those
// that do not within the grace.
func (r *run) stopGracefully() {
	r.stopped.Store(true)
	select {
	case <-time.After(r.Grace):
	case <-r.life.Done():
	}
	r.kill()
}

// fail ends the job with its first error. Once connections are being closed, errors
// are its consequence.
func (r *run) fail(err error) {
	if r.life.Err() != nil {
		return
	}
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	r.mu.Unlock()
	if first {
		r.stopped.Store(true)
		go r.stopGracefully()
	}
}

// connect opens a session; a server that refuses for the moment is asked again.
func (r *run) connect() (Connection, error) {
	for try := 1; ; try++ {
		c, err := r.Connect(r.life)
		if err == nil {
			return c, nil
		}
		if try == connectTries || !mysql.IsTransientConnect(err) || r.stopped.Load() {
			return nil, mysql.FailureOf(err, contract.ClassTargetUnreachable)
		}
		time.Sleep(connectPause)
	}
}

// measurement sums up what the clients did. They have ended.
func (r *run) measurement(clients []*client) Measurement {
	m := Measurement{Totals: r.recorder.Totals(), Err: r.err}
	var end int64
	for _, c := range clients {
		end = max(end, c.end)
		m.Statements = m.Statements.Add(c.statements)
		m.Attempts += c.attempts
		m.Retries += c.retries
	}
	m.Start, m.Elapsed = r.epoch, time.Duration(end)
	operations, err := r.recorder.Operations()
	m.Err = errors.Join(m.Err, err)
	for _, o := range operations {
		if o.Count > 0 {
			m.Operations = append(m.Operations, o)
		}
	}
	m.Series = r.recorder.Series(end)
	return m
}

// client is one client on its goroutine.
type client struct {
	*run
	work     workload.Client
	samples  *measure.Client
	sessions []Connection

	events     int64 // measured ones, successful or not
	attempts   int64
	retries    int64
	yielded    int64
	measuring  bool
	done       bool           // it has nothing left to do
	before     workload.Stats // statements of the warm-up
	statements workload.Stats // of the measured part
	end        int64
}

// prepare is what comes before the release.
func (c *client) prepare() {
	if !c.inRun && !c.stopped.Load() {
		c.try(c.open)
	}
}

// live is a client from its release to its end.
func (c *client) live() {
	if c.inRun && !c.stopped.Load() {
		c.try(c.open)
	}
	if len(c.sessions) == c.perClient {
		c.loop()
	}
	c.close()
	c.samples.Flush()
	c.end = c.now()
}

func (c *client) try(step func() error) {
	if err := step(); err != nil {
		c.fail(err)
	}
}

func (c *client) open() error {
	for len(c.sessions) < c.perClient {
		s, err := c.connect()
		if err != nil {
			return err
		}
		c.sessions = append(c.sessions, s)
	}
	sessions := make([]workload.Session, len(c.sessions))
	for i, s := range c.sessions {
		sessions[i] = s
	}
	return c.work.Open(sessions)
}

func (c *client) loop() {
	for !c.stopped.Load() && !c.done {
		begin := c.now()
		if begin < 0 {
			if _, err := c.event(); err != nil && !c.done && c.Workload.OnError(err) == workload.Fail {
				c.fail(err)
			}
			continue
		}
		if !c.claim(begin) {
			break
		}
		c.measure(begin)
		c.yieldIfDue(begin)
	}
	if !c.stopped.Load() {
		c.try(c.work.Close)
	}
}

func (c *client) yieldIfDue(now int64) {
	if now-c.yielded > yieldAfter {
		c.yielded = now
		runtime.Gosched()
	}
}

// claim reports whether the stop rules allow one more event.
func (c *client) claim(begin int64) bool {
	if !c.measuring {
		c.measuring = true
		if c.Load.Warmup > 0 {
			c.before = c.stats()
		}
	}
	switch {
	case c.duration > 0 && begin >= c.duration,
		c.Load.EventsPerClient > 0 && c.events >= c.Load.EventsPerClient,
		c.Load.Events > 0 && c.claimed.Add(1) > c.Load.Events:
		return false
	}
	c.events++
	return true
}

func (c *client) measure(begin int64) {
	operation, err := c.event()
	end := c.now()
	switch {
	case err == nil:
		c.samples.Success(operation, end, end-begin)
		return
	case c.done:
		c.claimed.Add(-1) // another client may have it
		return
	case c.life.Err() != nil:
		return // its connection was closed under it
	}
	c.samples.Error(end, mysql.Number(err))
	if c.Workload.OnError(err) == workload.Fail {
		c.fail(err)
	}
}

// event does one event with its retries.
func (c *client) event() (operation int, err error) {
	for {
		operation, err = c.work.Event()
		if errors.Is(err, workload.ErrDone) {
			c.done = true
			return operation, err
		}
		if c.measuring {
			c.attempts++
		}
		if err == nil || c.stopped.Load() || c.Workload.OnError(err) != workload.Retry {
			return operation, err
		}
		if c.measuring {
			c.retries++
		}
	}
}

func (c *client) stats() workload.Stats {
	var sum workload.Stats
	for _, s := range c.sessions {
		sum = sum.Add(s.Stats())
	}
	return sum
}

func (c *client) close() {
	if c.measuring {
		c.statements = c.stats().Sub(c.before)
	}
	for _, s := range c.sessions {
		_ = s.Close() // it has said all that it had to say
	}
}
