package mysql

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// blockingConn is a connection whose calls block in the kernel, as those of a C
// client do. Go's own sockets wait in its poller: an answer then wakes the poller's
// thread first and the client's after it, which on an otherwise idle server is a fifth
// of the time of a short statement. The price is a thread for each waiting client.
type blockingConn struct {
	net.Conn // the addresses; its socket is closed
	fd       int

	mu     sync.RWMutex // held for reading while fd is in use
	closed chan struct{}
	once   sync.Once
}

// newBlockingConn takes the socket out of Go's poller. The connection that was given
// is closed in any case.
func newBlockingConn(conn net.Conn) (net.Conn, error) {
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
	return &blockingConn{Conn: conn, fd: fd, closed: make(chan struct{})}, nil
}

func (c *blockingConn) Read(b []byte) (int, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for {
		if c.isClosed() {
			return 0, c.wrap("read", net.ErrClosed)
		}
		n, err := syscall.Read(c.fd, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, c.wrap("read", os.NewSyscallError("read", err))
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (c *blockingConn) Write(b []byte) (written int, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for written < len(b) {
		if c.isClosed() {
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

// Close ends a call in progress, and waits for it to leave the socket.
func (c *blockingConn) Close() (err error) {
	c.once.Do(func() {
		close(c.closed)
		_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR) // a server that is gone has done so
		c.mu.Lock()
		defer c.mu.Unlock()
		err = os.NewSyscallError("close", syscall.Close(c.fd))
	})
	return err
}

func (c *blockingConn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *blockingConn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: c.RemoteAddr().Network(), Addr: c.RemoteAddr(), Err: err}
}

// The driver sets no deadlines where it has no timeouts.

func (c *blockingConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *blockingConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *blockingConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
