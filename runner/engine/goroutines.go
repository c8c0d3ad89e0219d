package engine

import (
	"context"
	"runtime"
	"sync"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/mysql"
)

const (
	// connectsAtOnce bounds the rush on a server before the release.
	connectsAtOnce = 64
	// maxThreads is up to how many sessions each may take a thread. With more of them the
	// time is spent in queues, and threads cost memory and may be limited.
	maxThreads = 128
	// pulse is the heartbeat of this engine in nanoseconds. A timer costs more here, where
	// a thread that has nothing to do wakes for it.
	pulse = 10 * heartbeat
)

// Goroutines drives each client on a goroutine of its own. It runs anywhere.
type Goroutines struct{}

// Run is part of Engine.
func (Goroutines) Run(ctx context.Context, job *Job) Measurement {
	r, clients := newRun(ctx, job)
	defer context.AfterFunc(ctx, r.stopGracefully)()
	how := mysql.Transport{Blocking: len(clients)*r.perClient <= maxThreads}
	if how.Blocking {
		defer reserveProcs(len(clients) + 1)()
	}

	r.phase(contract.PhaseConnect)
	var ready, done sync.WaitGroup
	turns, released := make(chan struct{}, connectsAtOnce), make(chan struct{})
	for _, c := range clients {
		ready.Add(1)
		done.Go(func() {
			turns <- struct{}{}
			c.host = &goroutine{run: r, how: how}
			c.prepare()
			<-turns
			ready.Done()
			<-released
			c.live()
			r.running.Add(-1)
		})
	}
	r.running.Store(int64(len(clients)))
	ready.Wait()
	r.awaitReady()
	r.start()
	close(released)
	done.Go(r.takePulse)
	done.Wait()
	return r.measurement(clients)
}

// takePulse notes how late a timer is, over and over, until all clients have ended.
func (r *run) takePulse() {
	samples := r.recorder.NewClient()
	defer samples.Flush()
	for r.running.Load() > 0 {
		at := r.now() + pulse
		time.Sleep(time.Duration(pulse))
		samples.Woken(at, r.now()-at)
	}
}

// reserveProcs sees to it that there are n Ps of the Go scheduler. A goroutine whose
// calls block and that has a P to itself goes on at once when it comes back from one;
// with fewer the threads pass them on to each other, and where none is idle, the
// scheduler looks all the time for one to take away. It is no claim to processors: the
// kernel shares those out.
func reserveProcs(n int) (restore func()) {
	before := runtime.GOMAXPROCS(0)
	if n <= before {
		return func() {}
	}
	runtime.GOMAXPROCS(n)
	return func() { runtime.GOMAXPROCS(before) }
}

// goroutine is a client's own.
type goroutine struct {
	*run
	how     mysql.Transport
	yielded int64
}

func (g *goroutine) transport() mysql.Transport { return g.how }

func (g *goroutine) sleepUntil(at int64) {
	timer := time.NewTimer(time.Duration(at - g.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.stopping:
	}
}

func (g *goroutine) breathe(now int64) {
	if now-g.yielded > yieldAfter {
		g.yielded = now
		runtime.Gosched()
	}
}
