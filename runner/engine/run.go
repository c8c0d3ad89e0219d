package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/measure"
	"dbbench.dev/operator/runner/mysql"
)

// heartbeat is the time in nanoseconds between two looks at how late the timers are. A
// generator that gets too little CPU shows there, also where all clients wait for the
// server.
const heartbeat = int64(10 * time.Millisecond)

// run is the state of one job, whatever drives its clients.
type run struct {
	*Job
	recorder  *measure.Recorder
	inRun     bool // clients connect after their release
	perClient int  // sessions
	pace      pace

	epoch    time.Time // start of the measured part, set before the release; until then, of the run
	started  bool
	duration int64 // of the measured part in nanoseconds, 0 is no limit
	claimed  atomic.Int64
	running  atomic.Int64 // clients, where each has a goroutine
	stopped  atomic.Bool
	stopping chan struct{} // closed when stopped is set
	// wake, where it is not nil, has clients that sleep look at stopped.
	wake func()

	// life ends when the connections are to be closed under their calls.
	life context.Context
	kill context.CancelFunc

	mu  sync.Mutex
	err error
}

// newRun makes the state of a job and its clients.
func newRun(ctx context.Context, job *Job) (*run, []*client) {
	need := job.Workload.Requirements()
	r := &run{
		Job: job, recorder: measure.NewRecorder(job.Workload.Operations()),
		inRun: need.ConnectInRun, perClient: need.Sessions, pace: newPace(job),
		duration: int64(job.Load.Duration), stopping: make(chan struct{}), epoch: time.Now(),
	}
	// The connections outlive ctx by the grace.
	r.life, r.kill = context.WithCancel(context.WithoutCancel(ctx))

	clients := make([]*client, job.Load.Clients)
	total := max(job.Total, len(clients))
	for i := range clients {
		clients[i] = &client{run: r, index: i, work: job.Workload.NewClient(job.First+i, total), samples: r.recorder.NewClient()}
	}
	return r, clients
}

// awaitReady has the other replicas wait for the clients, and the clients for them.
func (r *run) awaitReady() {
	if r.Ready == nil || r.stopped.Load() {
		return
	}
	if err := r.Ready(r.life); err != nil {
		r.fail(err)
	}
}

// start starts the clock. The clients may go after it.
func (r *run) start() {
	warmup := time.Duration(r.Load.Warmup)
	if warmup > 0 {
		r.phase(contract.PhaseWarmup)
		timer := time.AfterFunc(warmup, func() { r.phase(contract.PhaseMeasure) })
		context.AfterFunc(r.life, func() { timer.Stop() })
	} else {
		r.phase(contract.PhaseMeasure)
	}
	r.epoch, r.started = time.Now().Add(warmup), true
	if r.duration > 0 {
		timer := time.AfterFunc(warmup+time.Duration(r.duration)+r.Grace, r.cutOff)
		context.AfterFunc(r.life, func() { timer.Stop() })
	}
	r.Monitor.watch(r.epoch, r.Load, r.recorder)
}

func (r *run) phase(p contract.Phase) {
	if r.Phase != nil && !r.stopped.Load() {
		r.Phase(p)
	}
}

// now is the time since the measured part began, negative in the warm-up.
func (r *run) now() int64 { return int64(time.Since(r.epoch)) }

// stop has the clients end after their event.
func (r *run) stop() {
	if r.stopped.Swap(true) {
		return
	}
	close(r.stopping)
	if r.wake != nil {
		r.wake()
	}
}

// stopGracefully lets clients finish their event, and closes the connections of those
// that do not within the grace.
func (r *run) stopGracefully() {
	r.stop()
	select {
	case <-time.After(r.Grace):
	case <-r.life.Done():
	}
	r.kill()
}

// cutOff ends the clients that are still at an event a grace after the load's duration.
func (r *run) cutOff() {
	r.record(&contract.Failure{
		Class:   contract.ClassDeadlineExceeded,
		Message: fmt.Sprintf("there were clients that waited for the server %s after the load had ended: their connections were closed", r.Grace),
		Hint:    "the numbers are of what was answered by then; look whether the server hangs, or choose a load whose statements take less time",
	})
	r.stop()
	r.kill()
}

// fail ends the job with its first error. Once connections are being closed, errors
// are its consequence.
func (r *run) fail(err error) {
	if r.record(err) {
		r.stop()
		go r.stopGracefully()
	}
}

// record keeps the first error.
func (r *run) record(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.life.Err() != nil {
		return false
	}
	r.err = err
	return true
}

// measurement sums up what the clients did. They have ended.
func (r *run) measurement(clients []*client) Measurement {
	r.kill() // nothing is to come after the end
	m := Measurement{Err: r.err}
	var end int64
	for _, c := range clients {
		end = max(end, c.end)
		m.Statements = m.Statements.Add(c.statements)
		m.Attempts += c.attempts
		m.Retries += c.retries
	}
	if r.started {
		m.Start, m.Elapsed = r.epoch, time.Duration(end)
	}
	m.Totals = r.recorder.Totals()
	m.Totals.Dropped += r.pace.left(end)
	m.Wakeups = r.recorder.Wakeups()
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

// open opens a session of a client.
func (r *run) open(how mysql.Transport) (Connection, error) {
	c, err := r.Connect(r.life, how)
	if err != nil {
		return nil, mysql.FailureOf(err, contract.ClassTargetUnreachable)
	}
	return c, nil
}
