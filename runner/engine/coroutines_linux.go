package engine

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/mysql"
)

// Coroutines drives each client on a coroutine. A few event loops, as many as there are
// processors, share the clients out; where a client would wait for the server its
// coroutine yields, and its loop goes on with another one. What cannot but block, such as
// connecting, is done on goroutines meanwhile.
type Coroutines struct {
	// Loops is the number of loops, 0 is one for each processor.
	Loops int
}

// Run is part of Engine.
func (e Coroutines) Run(ctx context.Context, job *Job) Measurement {
	n := e.Loops
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	r, clients := newRun(ctx, job)
	loops, err := newLoops(r, min(n, len(clients)))
	if err != nil {
		r.fail(err)
		return r.measurement(clients)
	}
	defer reserveProcs(len(loops) + 1)()
	turns := make(chan struct{}, connectsAtOnce)
	for i, c := range clients {
		loops[i%len(loops)].add(c, turns)
	}
	r.wake = func() {
		for _, l := range loops {
			l.poke()
		}
	}
	defer context.AfterFunc(ctx, r.stopGracefully)()

	r.phase(contract.PhaseConnect)
	released := make(chan struct{})
	var done sync.WaitGroup
	ready := make(chan struct{}, len(loops))
	for _, l := range loops {
		done.Go(func() {
			l.drive()
			ready <- struct{}{}
			<-released
			l.drive()
			l.close()
		})
	}
	for range loops {
		<-ready
	}
	r.awaitReady()
	r.start()
	close(released)
	done.Wait()
	m := r.measurement(clients)
	for _, l := range loops {
		m.LoopTime += time.Duration(l.end - l.begin)
		m.LoopIdle += time.Duration(l.idle)
	}
	return m
}

func newLoops(r *run, n int) ([]*loop, error) {
	loops := make([]*loop, n)
	for i := range loops {
		l, err := newLoop(r)
		if err != nil {
			for _, l := range loops[:i] {
				l.close()
			}
			return nil, errors.Join(&contract.Failure{Class: contract.ClassRunnerError, Message: "an event loop could not be made: " + err.Error(),
				Hint: "raise the limit of open files"}, err)
		}
		loops[i] = l
	}
	return loops, nil
}

// waitsFor is what a coroutine that has yielded waits for.
type waitsFor uint8

const (
	forNothing waitsFor = iota // it runs, or has ended
	forTurn                    // it runs when the loop comes to it
	forSocket
	forTime
	forHelper
	forRelease
)

// coroutine is what a client runs on. It runs on its loop's goroutine, or not at all.
type coroutine struct {
	loop   *loop
	client *client
	index  int32 // in the loop
	turns  chan struct{}

	waits waitsFor
	// event is set by an event that came while the coroutine waited for something else.
	event  bool
	at     int64 // when it is to be woken
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
}

// start makes the coroutine. It runs up to where it first waits.
func (c *coroutine) start() {
	c.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		c.client.prepare()
		c.wait(forRelease)
		c.client.live()
	})
}

// wait yields until the loop finds that what it waits for has come.
func (c *coroutine) wait(what waitsFor) {
	c.waits = what
	c.yield(struct{}{})
}

func (c *coroutine) transport() mysql.Transport { return mysql.Transport{Waiter: c} }

func (c *coroutine) sleepUntil(at int64) {
	if c.loop.stopped.Load() {
		return
	}
	c.at = at
	c.loop.sleepers.push(c)
	c.wait(forTime)
}

// breathe gives a client that never waits no more than its share of the loop.
func (c *coroutine) breathe(now int64) {
	if now-c.loop.turn > yieldAfter {
		c.loop.runnable = append(c.loop.runnable, c)
		c.wait(forTurn)
	}
}

// Watch is part of mysql.Waiter.
func (c *coroutine) Watch(fd int) error { return c.loop.watch(fd, c.index) }

// AwaitRead is part of mysql.Waiter.
func (c *coroutine) AwaitRead() {
	if c.event {
		c.event = false
		return
	}
	c.wait(forSocket)
}

// AwaitWrite is part of mysql.Waiter.
func (c *coroutine) AwaitWrite(fd int) error {
	if err := c.loop.watchWrites(fd, c.index, true); err != nil {
		return err
	}
	c.wait(forSocket)
	return c.loop.watchWrites(fd, c.index, false)
}

// Elsewhere is part of mysql.Waiter. No more than connectsAtOnce of all clients are
// elsewhere at a time.
func (c *coroutine) Elsewhere(f func()) {
	go func() {
		c.turns <- struct{}{}
		f()
		<-c.turns
		c.loop.returned(c)
	}()
	c.wait(forHelper)
}
