package workload

import (
	"database/sql/driver"
	"strconv"
)

// Session is one connection to the server. Its calls block the client that makes
// them and nobody else; an engine may serve it on a goroutine or on a coroutine. It
// is used by one client at a time. No call keeps a text or an argument after it has
// returned: a client may build them in a buffer that it uses again.
//
// Errors of the server are *mysql.MySQLError in the chain of the error; any other
// error means that the connection is lost.
type Session interface {
	// Exec sends a statement as text and reads all its results to their end.
	Exec(query string) (Result, error)
	// Query sends a statement that gives rows as text, and hands each row to row. A nil
	// row drops them, which costs least.
	Query(query string, row RowFunc) error

	// Prepare has the server prepare a statement. The handle is the session's own and
	// is lost with a Reconnect.
	Prepare(query string) (Handle, error)
	// ExecPrepared executes a prepared statement.
	ExecPrepared(h Handle, args []Arg) (Result, error)
	// QueryPrepared executes a prepared statement that gives rows; see Query.
	QueryPrepared(h Handle, args []Arg, row RowFunc) error

	// Reconnect closes the connection and opens another one.
	Reconnect() error
}

// Stats count a session's statements by what the server answered.
type Stats struct {
	Reads, Writes, Other int64
	// Reconnects count connections beyond the first.
	Reconnects int64
}

// Sub returns the counts since an earlier reading.
func (s Stats) Sub(before Stats) Stats {
	return Stats{s.Reads - before.Reads, s.Writes - before.Writes, s.Other - before.Other, s.Reconnects - before.Reconnects}
}

// Add returns the sum of both.
func (s Stats) Add(other Stats) Stats {
	return Stats{s.Reads + other.Reads, s.Writes + other.Writes, s.Other + other.Other, s.Reconnects + other.Reconnects}
}

// Handle is a statement that a session has prepared.
type Handle int

// Result is what a statement without rows did.
type Result struct {
	// Affected counts the rows that the last statement of the text changed.
	Affected int64
	// InsertID is the first value that AUTO_INCREMENT gave, 0 where it gave none.
	InsertID int64
}

// RowFunc receives one row. The row is valid until it returns; an error ends the
// query, after its other rows were read and dropped.
type RowFunc func(row Row) error

// Row is one row of a result, a value per column.
type Row []driver.Value

// Null reports whether column i is NULL.
func (r Row) Null(i int) bool { return r[i] == nil }

// Int is column i as an integer; the second result is false where it is none.
func (r Row) Int(i int) (int64, bool) {
	switch v := r[i].(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), true
	case []byte:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Append appends column i as text to dst; NULL appends nothing.
func (r Row) Append(dst []byte, i int) []byte {
	switch v := r[i].(type) {
	case []byte:
		return append(dst, v...)
	case string:
		return append(dst, v...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case float32:
		return strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	return dst
}

// Arg is an argument of a prepared statement. The zero value is NULL.
type Arg struct {
	kind  argKind
	num   int64
	text  string
	bytes []byte
}

type argKind uint8

const (
	argNull argKind = iota
	argInt
	argText
	argBytes
)

// Int is an integer argument.
func Int(v int64) Arg { return Arg{kind: argInt, num: v} }

// Text is a character argument.
func Text(v string) Arg { return Arg{kind: argText, text: v} }

// Bytes is a binary argument. It is read while the statement is sent, not later.
func Bytes(v []byte) Arg { return Arg{kind: argBytes, bytes: v} }

// Value is the argument as the driver takes it.
func (a Arg) Value() driver.Value {
	switch a.kind {
	case argInt:
		return a.num
	case argText:
		return a.text
	case argBytes:
		return a.bytes
	}
	return nil
}
