//go:build !linux

package mysql

import "net"

// newBlockingConn leaves the connection to Go's poller.
func newBlockingConn(conn net.Conn) (net.Conn, error) { return conn, nil }
