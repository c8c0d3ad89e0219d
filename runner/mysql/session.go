package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"dbbench.dev/operator/runner/workload"
)

// Session serves workload.Session over a connection of the driver, for one goroutine
// at a time.
type Session struct {
	connector *Connector
	options   SessionOptions
	conn      driverConn
	prepared  []preparedStatement
	values    []driver.Value // reused for arguments and rows
	stats     workload.Stats

	// The end of ctx closes the socket, and a call in progress fails. The calls
	// themselves get a context that cannot be cancelled: one that can costs the driver a
	// channel for each statement.
	ctx    context.Context
	forget func() bool
	mu     sync.Mutex // guards socket
	socket net.Conn
}

// SessionOptions are how a session connects.
type SessionOptions struct {
	// Database is selected on connecting; empty selects none.
	Database        string
	MultiStatements bool
	// Patient has connecting, also anew, tried again where the reason may pass: the server
	// is full for the moment, or just starts.
	Patient bool
	Transport
}

// driverConn is what is used of the driver's connection.
type driverConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
}

// preparedStatement is what is used of the driver's statement. The forms with a
// context copy the arguments twice.
type preparedStatement interface {
	Exec(args []driver.Value) (driver.Result, error)
	Query(args []driver.Value) (driver.Rows, error)
	Close() error
}

var background = context.Background()

// Open connects. The session lives until Close, or until ctx ends, which closes the
// connection also under a call in progress.
func (c *Connector) Open(ctx context.Context, options SessionOptions) (*Session, error) {
	s := &Session{connector: c, options: options, ctx: ctx}
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.forget = context.AfterFunc(ctx, s.kill)
	return s, nil
}

// connect opens the connection, which blocks, and has it wait as the options say.
func (s *Session) connect() (err error) {
	if s.options.Waiter == nil {
		return s.dial()
	}
	s.options.Waiter.Elsewhere(func() { err = s.dial() })
	if err != nil {
		return err
	}
	return attach(s.socket, s.options.Waiter)
}

func (s *Session) dial() error {
	conn, socket, err := s.connector.openPatiently(s.ctx, s.options)
	if err != nil {
		return err
	}
	dc, ok := conn.(driverConn)
	if !ok {
		return errors.Join(fmt.Errorf("the driver's connection %T lacks methods", conn), conn.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return errors.Join(err, conn.Close())
	}
	s.conn, s.socket = dc, socket
	return nil
}

// Close says good-bye to the server and closes the connection.
func (s *Session) Close() error {
	s.forget()
	return s.conn.Close()
}

// kill says nothing to the server: a statement may be under way.
func (s *Session) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	interrupt(s.socket)
}

// Stats are the counts so far.
func (s *Session) Stats() workload.Stats { return s.stats }

// Reconnect is part of workload.Session.
func (s *Session) Reconnect() error {
	// An error of the old connection would say nothing of the new one.
	_ = s.conn.Close()
	s.prepared = s.prepared[:0]
	s.stats.Reconnects++
	return s.connect()
}

// Exec is part of workload.Session.
func (s *Session) Exec(query string) (result workload.Result, err error) {
	defer s.connector.wary(&err)
	r, err := s.conn.ExecContext(background, query, nil)
	return s.result(r, err)
}

// Query is part of workload.Session.
func (s *Session) Query(query string, row workload.RowFunc) (err error) {
	defer s.connector.wary(&err)
	if row == nil { // the driver's Exec skips rows without looking into them
		_, err := s.conn.ExecContext(background, query, nil)
		return s.read(err)
	}
	rows, err := s.conn.QueryContext(background, query, nil)
	if err != nil {
		return err
	}
	return s.read(s.each(rows, row))
}

// Prepare is part of workload.Session.
func (s *Session) Prepare(query string) (handle workload.Handle, err error) {
	defer s.connector.wary(&err)
	st, err := s.conn.Prepare(query)
	if err != nil {
		return 0, err
	}
	p, ok := st.(preparedStatement)
	if !ok {
		return 0, fmt.Errorf("the driver's statement %T lacks methods", st)
	}
	s.prepared = append(s.prepared, p)
	return workload.Handle(len(s.prepared) - 1), nil
}

// Deallocate has the server forget a prepared statement.
func (s *Session) Deallocate(h workload.Handle) error { return s.prepared[h].Close() }

// ExecPrepared is part of workload.Session.
func (s *Session) ExecPrepared(h workload.Handle, args []workload.Arg) (result workload.Result, err error) {
	defer s.connector.wary(&err)
	r, err := s.prepared[h].Exec(s.arguments(args))
	return s.result(r, err)
}

// QueryPrepared is part of workload.Session.
func (s *Session) QueryPrepared(h workload.Handle, args []workload.Arg, row workload.RowFunc) (err error) {
	defer s.connector.wary(&err)
	rows, err := s.prepared[h].Query(s.arguments(args))
	if err != nil {
		return err
	}
	if row == nil {
		// Closing reads the rows to their end without looking into them. The driver's Exec
		// would do so, too, but waits for the columns, which MariaDB sends once only.
		return s.read(rows.Close())
	}
	return s.read(s.each(rows, row))
}

func (s *Session) arguments(args []workload.Arg) []driver.Value {
	s.values = s.values[:0]
	for _, a := range args {
		s.values = append(s.values, a.Value())
	}
	return s.values
}

func (s *Session) read(err error) error {
	if err == nil {
		s.stats.Reads++
	}
	return err
}

func (s *Session) result(r driver.Result, err error) (workload.Result, error) {
	if err != nil {
		return workload.Result{}, err
	}
	// The driver's results are in memory: these calls cannot fail.
	affected, _ := r.RowsAffected()
	id, _ := r.LastInsertId()
	if affected > 0 {
		s.stats.Writes++
	} else {
		s.stats.Other++
	}
	return workload.Result{Affected: affected, InsertID: id}, nil
}

// each hands all rows of all result sets to row, and reads them to the end in any
// case: only then the connection takes another command.
func (s *Session) each(rows driver.Rows, row workload.RowFunc) error {
	var failed error
	for {
		if n := len(rows.Columns()); n > cap(s.values) {
			s.values = make([]driver.Value, n)
		} else {
			s.values = s.values[:n]
		}
		for {
			err := rows.Next(s.values)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if failed == nil {
				failed = row(workload.Row(s.values))
			}
		}
		next, ok := rows.(driver.RowsNextResultSet)
		if !ok || !next.HasNextResultSet() {
			break
		}
		if err := next.NextResultSet(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return errors.Join(failed, rows.Close())
}

// table reads the rows of a statement as text, for what is read once.
func (s *Session) table(query string) ([][]string, error) {
	var out [][]string
	size := 0
	err := s.Query(query, func(row workload.Row) error {
		texts := make([]string, len(row))
		for i := range row {
			texts[i] = string(row.Append(nil, i))
			size += len(texts[i])
		}
		if size > maxTable {
			s.kill() // there may be no end to what is still to come
			return nil
		}
		out = append(out, texts)
		return nil
	})
	if size > maxTable {
		return nil, nonsense(fmt.Sprintf("more than %d bytes for %s", maxTable, query))
	}
	return out, err
}

// quoteName quotes an identifier. Back quotes hold under ANSI_QUOTES too.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// quoteText quotes a text such that it means the same with and without
// NO_BACKSLASH_ESCAPES: quotes are doubled, and a text with a backslash is sent in
// hexadecimal.
func quoteText(text string) string {
	if strings.Contains(text, `\`) {
		return fmt.Sprintf("_utf8mb4 X'%X'", text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
