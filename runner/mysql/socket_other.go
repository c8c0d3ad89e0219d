//go:build !linux

package mysql

import "net"

// ownSocket leaves the connection to Go's poller.
func ownSocket(conn net.Conn) (net.Conn, error) { return conn, nil }

// attach has nothing to do: Go's poller blocks the client alone, which is what a Waiter
// is for.
func attach(net.Conn, Waiter) error { return nil }

func interrupt(conn net.Conn) { _ = conn.Close() } // what can fail here is closed as well
