package engine

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"dbbench.dev/operator/runner/measure"
)

// eventsAtOnce is how many events a loop takes from the kernel with one call.
const eventsAtOnce = 128

// What the loop's own descriptors have in place of a coroutine's index.
const (
	wakeIndex  = -1
	timerIndex = -2
)

const unarmed = math.MinInt64

// loop drives coroutines by the events of their sockets, edge-triggered: an event tells
// that something has come, and reading finds out what.
type loop struct {
	*run
	epoll, wakeup, timer int

	coroutines []*coroutine
	waiting    int // for something else than the release
	runnable   []*coroutine
	sleepers   sleepers
	armed      int64 // what the timer is set to, or unarmed
	turn       int64 // when the loop last came back from the kernel
	yielded    int64
	beat       int64 // when the loop looks next at how late it is
	samples    *measure.Client
	events     [eventsAtOnce]unix.EpollEvent

	begin, end, idle int64 // of the part after the release, nanoseconds

	mu     sync.Mutex // guards what other goroutines touch
	back   []*coroutine
	poked  bool
	closed bool
}

func newLoop(r *run) (l *loop, err error) {
	l = &loop{run: r, epoll: -1, wakeup: -1, timer: -1, armed: unarmed, samples: r.recorder.NewClient()}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if l.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	// Timeouts of epoll_wait are in milliseconds, and those of a thread are late by its
	// timer slack.
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return l, errors.Join(l.watch(l.wakeup, wakeIndex), l.watch(l.timer, timerIndex))
}

func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, fd := range []int{l.epoll, l.wakeup, l.timer} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing was written to it
		}
	}
}

func (l *loop) add(c *client, turns chan struct{}) {
	co := &coroutine{loop: l, client: c, index: int32(len(l.coroutines)), turns: turns}
	c.host = co
	co.start()
	l.coroutines = append(l.coroutines, co)
}

// watch has events of a descriptor that something was read, and of its end.
func (l *loop) watch(fd int, index int32) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: index}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &e))
}

// watchWrites adds or removes the event that a socket takes more. It is there only while
// that is waited for: a unix socket has it with each message that its peer reads.
func (l *loop) watchWrites(fd int, index int32, on bool) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: index}
	if on {
		e.Events |= unix.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, fd, &e))
}

// drive runs all coroutines until they wait for the release, or have ended.
func (l *loop) drive() {
	l.begin, l.idle = l.now(), 0
	l.turn, l.yielded, l.beat = l.begin, l.begin, l.begin+heartbeat
	l.waiting = len(l.coroutines)
	l.runnable = append(l.runnable[:0], l.coroutines...)
	for l.runAll(); l.waiting > 0; l.runAll() {
		l.arm()
		l.await()
		l.wakeSleepers()
	}
	l.end = l.now()
	l.samples.Flush()
}

// runAll gives each that can run its turn.
func (l *loop) runAll() {
	turn := l.runnable
	l.runnable = nil
	for _, c := range turn {
		l.step(c)
	}
	if l.runnable == nil {
		l.runnable = turn[:0]
	}
}

// step runs a coroutine until it waits.
func (l *loop) step(c *coroutine) {
	c.waits = forNothing
	c.resume()
	if c.waits == forNothing || c.waits == forRelease {
		l.waiting--
	}
}

// await takes events from the kernel and runs whom they are for. It waits for them where
// nobody can run.
func (l *loop) await() {
	timeout := -1
	if len(l.runnable) > 0 {
		timeout = 0
	}
	before := l.now()
	n, err := unix.EpollWait(l.epoll, l.events[:], timeout)
	l.turn = l.now()
	l.idle += l.turn - before
	if l.turn >= l.beat {
		if l.started {
			l.samples.Woken(l.beat, l.turn-l.beat)
		}
		l.beat = l.turn + heartbeat
	}
	if l.turn-l.yielded > yieldAfter {
		l.yielded = l.turn
		runtime.Gosched()
	}
	if err != nil {
		return // EINTR; the call has no other errors
	}
	for _, e := range l.events[:n] {
		switch e.Fd {
		case wakeIndex:
			l.takeBack()
		case timerIndex:
			l.armed = unarmed
		default:
			c := l.coroutines[e.Fd]
			if c.waits != forSocket {
				c.event = true
				continue
			}
			l.step(c)
			l.wakeSleepers() // a long list of events is not to hold them up
		}
	}
}

// returned tells that a coroutine is back from elsewhere. It may be called on any
// goroutine.
func (l *loop) returned(c *coroutine) {
	l.mu.Lock()
	l.back = append(l.back, c)
	l.mu.Unlock()
	l.poke()
}

// poke has the loop look around. It may be called on any goroutine.
func (l *loop) poke() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.poked {
		return
	}
	l.poked = true
	_, _ = unix.Write(l.wakeup, binary.NativeEndian.AppendUint64(nil, 1)) // fails only where the loop is awake already
}

// takeBack runs those who are back from elsewhere.
func (l *loop) takeBack() {
	l.mu.Lock()
	back := l.back
	l.back, l.poked = nil, false
	l.mu.Unlock()
	for _, c := range back {
		l.step(c)
	}
}

// wakeSleepers runs those whose time has come; all, where the run is stopped.
func (l *loop) wakeSleepers() {
	for len(l.sleepers) > 0 && (l.sleepers[0].at <= l.now() || l.stopped.Load()) {
		l.step(heap.Pop(&l.sleepers).(*coroutine))
	}
}

// arm sets the timer to the first sleeper's time, or to the next beat.
func (l *loop) arm() {
	next := l.beat
	if len(l.sleepers) > 0 {
		next = min(next, l.sleepers[0].at)
	}
	if next == l.armed {
		return
	}
	l.armed = next
	left := max(l.armed-l.now(), 1) // 0 would disarm it
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(left)}
	_ = unix.TimerfdSettime(l.timer, 0, &spec, nil) // a time in range, and a timer that is open
}

// sleepers are a heap by the time at which they are to be woken.
type sleepers []*coroutine

func (s sleepers) Len() int           { return len(s) }
func (s sleepers) Less(i, j int) bool { return s[i].at < s[j].at }
func (s sleepers) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sleepers) Push(x any)        { *s = append(*s, x.(*coroutine)) }
func (s *sleepers) Pop() any {
	old := *s
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return last
}

func (s *sleepers) push(c *coroutine) { heap.Push(s, c) }
