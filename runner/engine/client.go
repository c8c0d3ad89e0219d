package engine

import (
	"errors"
	"time"

	"dbbench.dev/operator/runner/measure"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/workload"
)

// yieldAfter is the time in nanoseconds after which whoever drives clients yields by
// itself. A goroutine that has not for 10 ms is preempted by the Go runtime, which also
// takes its P away while it waits for the server, and then watches all clients at a cost
// of a quarter of the runner's CPU.
const yieldAfter = int64(8 * time.Millisecond)

// host is what a client runs on. Its methods are called by the client.
type host interface {
	// transport is how the client's sessions wait.
	transport() mysql.Transport
	// sleepUntil waits until the run's clock shows at, or until the run is stopped.
	sleepUntil(at int64)
	// breathe yields where that is due.
	breathe(now int64)
}

// client is one client.
type client struct {
	*run
	host
	index    int // among those of this replica
	work     workload.Client
	samples  *measure.Client
	sessions []Connection

	events     int64 // measured ones, successful or not
	attempts   int64
	retries    int64
	measuring  bool
	begun      bool           // it has done an event
	done       bool           // it has nothing left to do
	before     workload.Stats // statements of the warm-up
	statements workload.Stats // of the measured part
	end        int64
}

// prepare is what comes before the release.
func (c *client) prepare() {
	if !c.inRun && !c.stopped.Load() {
		c.try(c.connect)
	}
}

// live is a client from its release to its end.
func (c *client) live() {
	if c.inRun && !c.stopped.Load() {
		c.try(c.connect)
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

func (c *client) connect() error {
	for len(c.sessions) < c.perClient {
		s, err := c.open(c.transport())
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
		begin, ok := c.due()
		if !ok {
			break
		}
		if begin < 0 {
			if _, err := c.event(); err != nil && !c.done && c.Workload.OnError(err) == workload.Fail {
				c.fail(err)
			}
			c.breathe(c.now())
			continue
		}
		if !c.claim(begin) {
			break
		}
		c.breathe(c.measure(begin))
	}
	if !c.stopped.Load() {
		c.try(c.work.Close)
	}
}

// due waits for the client's next event and returns the time from which its latency
// counts. The second result is false when there is none.
func (c *client) due() (int64, bool) {
	if c.pace.arrivals != nil {
		return c.arrival()
	}
	now := c.now()
	if c.pace.think > 0 && c.begun {
		now = c.sleep(now + c.pace.think)
	}
	if from := c.pace.activeFrom(c.index, now); from > now {
		now = c.sleep(from)
	}
	c.begun = true
	return now, !c.stopped.Load()
}

// arrival takes the next arrival of an open loop. An idle client has it before its time
// and waits; where all clients are busy the first that ends its event has it late.
func (c *client) arrival() (int64, bool) {
	for !c.stopped.Load() {
		at, ok := c.pace.arrivals.take()
		now := c.now()
		switch {
		case !ok:
			c.sleep(c.duration)
			return 0, false
		case c.duration > 0 && now >= c.duration:
			c.pace.arrivals.miss(at)
			return 0, false
		case now-at > maxWait:
			c.samples.Dropped(at)
			continue
		case at > now:
			now = c.sleep(at)
		}
		if c.stopped.Load() {
			break
		}
		if now-at > onTime {
			c.samples.Late(at)
		}
		return at, true
	}
	return 0, false
}

// sleep waits until the run's clock shows at, at most until the load ends, and returns
// what it shows.
func (c *client) sleep(at int64) int64 {
	if c.duration > 0 {
		at = min(at, c.duration)
	}
	c.sleepUntil(at)
	now := c.now()
	if !c.stopped.Load() {
		c.samples.Woken(at, now-at)
	}
	return now
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

// measure does one event and records it. It returns the time at its end.
func (c *client) measure(begin int64) (end int64) {
	operation, err := c.event()
	end = c.now()
	switch {
	case err == nil:
		c.samples.Success(operation, end, end-begin)
		return end
	case c.done:
		c.claimed.Add(-1) // another client may have it
		return end
	case c.life.Err() != nil:
		return end // its connection was closed under it
	}
	c.samples.Error(end, mysql.Number(err))
	if c.Workload.OnError(err) == workload.Fail {
		c.fail(err)
	}
	return end
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
			c.samples.Retry(c.now(), mysql.Number(err))
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
