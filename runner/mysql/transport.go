package mysql

// Transport is how the calls of a session wait for the server. The zero value leaves
// that to Go's poller.
type Transport struct {
	// Blocking has the calls block in the kernel, on Linux. That answers soonest, and
	// takes a thread for each session that waits.
	Blocking bool
	// Waiter, on Linux, has an event loop wait.
	Waiter Waiter
}

// Waiter is how the sessions of one client wait where an event loop drives them. Its
// methods are called by that client alone; they block it and nobody else.
type Waiter interface {
	// Watch adds a non-blocking socket to those whose events wake the client. It is
	// forgotten when it is closed.
	Watch(fd int) error
	// AwaitRead returns when there may be something to read on one of the sockets, or one
	// has ended. It may return without a reason: reading tells.
	AwaitRead()
	// AwaitWrite does the same for a socket that took no more.
	AwaitWrite(fd int) error
	// Elsewhere has f run where it may block, and returns when f has.
	Elsewhere(f func())
}
