package mysql

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// socketConn is a connection that has its socket to itself. Go's own sockets wait in
// its poller: an answer then wakes the poller's thread first and the client's after it,
// which on an otherwise idle server is a fifth of the time of a short statement.
//
// Its calls block in the kernel, as those of a C client do, until it is attached to a
// Waiter.
type socketConn struct {
	net.Conn // the addresses; its socket is closed
	fd       int
	waiter   Waiter // nil while calls block
	asked    bool   // something was written since the last read
	more     bool   // the last read filled its buffer: there may be more

	mu     sync.RWMutex // held for reading while fd is in use
	closed atomic.Bool
}

// ownSocket takes the socket out of Go's poller. A descriptor that is only copied would
// be there twice, and cost each event twice. The connection that was given is closed in
// any case.
func ownSocket(conn net.Conn) (net.Conn, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return conn, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var fd int
	var dupErr error
	err = raw.Control(func(original uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, dupErr = syscall.Dup(int(original)); dupErr == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if err := errors.Join(err, dupErr); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := errors.Join(conn.Close(), syscall.SetNonblock(fd, false)); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return &socketConn{Conn: conn, fd: fd}, nil
}

// attach hands a socket that ownSocket made to a waiter.
func attach(conn net.Conn, waiter Waiter) error {
	c, ok := conn.(*socketConn)
	if !ok {
		return nil
	}
	if err := syscall.SetNonblock(c.fd, true); err != nil {
		return c.wrap("attach", os.NewSyscallError("fcntl", err))
	}
	if err := waiter.Watch(c.fd); err != nil {
		return c.wrap("attach", err)
	}
	c.waiter = waiter
	return nil
}

// interrupt ends a call in progress from anywhere. The socket stays its owner's.
func interrupt(conn net.Conn) {
	c, ok := conn.(*socketConn)
	if !ok {
		_ = conn.Close() // what can fail here is closed as well
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.closed.Load() {
		c.shutdown()
	}
}

// Read reads what has come, and waits where that is nothing.
func (c *socketConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if c.waiter == nil {
		return c.readBlocking(b)
	}
	if c.asked && !c.more { // the answer is never there yet
		c.waiter.AwaitRead()
	}
	c.asked = false
	for {
		if c.closed.Load() {
			return 0, c.wrap("read", net.ErrClosed)
		}
		// A call that does not block needs none of what Go does around one that may.
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			if n == 0 {
				return 0, io.EOF
			}
			c.more = int(n) == len(b)
			return int(n), nil
		case syscall.EAGAIN:
			c.waiter.AwaitRead()
		case syscall.EINTR:
		default:
			return 0, c.wrap("read", os.NewSyscallError("read", errno))
		}
	}
}

func (c *socketConn) readBlocking(b []byte) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for {
		if c.closed.Load() {
			return 0, c.wrap("read", net.ErrClosed)
		}
		n, err := syscall.Read(c.fd, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, c.wrap("read", os.NewSyscallError("read", err))
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write writes all of b.
func (c *socketConn) Write(b []byte) (written int, err error) {
	if c.waiter == nil {
		return c.writeBlocking(b)
	}
	c.asked = true
	for written < len(b) {
		if c.closed.Load() {
			return written, c.wrap("write", net.ErrClosed)
		}
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&b[written])), uintptr(len(b)-written))
		switch errno {
		case 0:
			written += int(n)
		case syscall.EAGAIN:
			if err := c.waiter.AwaitWrite(c.fd); err != nil {
				return written, c.wrap("write", err)
			}
		case syscall.EINTR:
		default:
			return written, c.wrap("write", os.NewSyscallError("write", errno))
		}
	}
	return written, nil
}

func (c *socketConn) writeBlocking(b []byte) (written int, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for written < len(b) {
		if c.closed.Load() {
			return written, c.wrap("write", net.ErrClosed)
		}
		n, err := syscall.Write(c.fd, b[written:])
		if err != nil && err != syscall.EINTR {
			return written, c.wrap("write", os.NewSyscallError("write", err))
		}
		written += max(n, 0)
	}
	return written, nil
}

// Close ends a call that blocks, and waits for it to leave the socket. Once attached,
// the connection is closed by its owner alone.
func (c *socketConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.shutdown()
	c.mu.Lock()
	defer c.mu.Unlock()
	return os.NewSyscallError("close", syscall.Close(c.fd))
}

func (c *socketConn) shutdown() {
	_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR) // a server that is gone has done so
}

func (c *socketConn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: c.RemoteAddr().Network(), Addr: c.RemoteAddr(), Err: err}
}

// The driver sets no deadlines where it has no timeouts.

func (c *socketConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *socketConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *socketConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
