package workload

import (
	"errors"
	"fmt"
	"math/bits"
)

// stripes deals rows to parts in turn: row i is in part i modulo parts.
type stripes struct{ rows, parts int64 }

// count is the number of rows of a part.
func (s stripes) count(part int64) int64 { return (s.rows - part + s.parts - 1) / s.parts }

// row is the i-th row of a part.
func (s stripes) row(part, i int64) int64 { return part + i*s.parts }

// payloadClient is one client. Its state is the number of statements that it has done:
// which row comes next, and in which version, follows from that.
type payloadClient struct {
	*payload
	index   int64
	stripes stripes
	count   int64  // its rows
	step    uint64 // from one of its rows to the next, modulo count
	limit   int64  // statements; negative is no limit

	session   Session
	statement Handle
	args      []Arg

	done      int64 // statements
	committed int64 // those of them that cannot be rolled back any more
	unchanged int64 // those of them that changed nothing
}

func (p *payload) NewClient(i, n int) Client {
	c := &payloadClient{payload: p, index: int64(i), stripes: stripes{p.opts.Rows, int64(n)}}
	c.count = c.stripes.count(c.index)
	c.step = 1
	if !p.inserts() {
		c.step = scatter(uint64(c.count))
	}
	c.limit = c.statements()
	p.clients = append(p.clients, c)
	return c
}

// statements is the client's limit.
func (c *payloadClient) statements() int64 {
	switch {
	case c.updatesAll() && !c.onePass:
		return -1
	case c.updatesAll() && (c.opts.TablePerClient && c.count > 0 || c.index == 0):
		return 1
	case c.updatesAll():
		return 0
	case c.inserts(), c.onePass, c.count == 0:
		return c.count
	}
	return -1
}

// scatter is a step that visits all of n places and jumps far each time: the golden
// section of n, or the next number that has no divisor in common with n.
func scatter(n uint64) uint64 {
	step := n*382/1000 + 1
	for divisor(step, n) > 1 {
		step++
	}
	return step
}

// divisor is the greatest that both have in common.
func divisor(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func (c *payloadClient) Open(sessions []Session) (err error) {
	c.session = sessions[0]
	table := c.table(0)
	if c.opts.TablePerClient {
		table = c.table(c.index)
	}
	if c.statement, err = c.session.Prepare(fmt.Sprintf(c.operation.statement, table)); err != nil {
		return err
	}
	c.args = make([]Arg, 0, 2)
	if !c.opts.Autocommit {
		_, err = c.session.Exec("SET autocommit = 0")
	}
	return err
}

// Event does the next statement, or the COMMIT that is due. Statements that a lock has
// rolled back are events again.
func (c *payloadClient) Event() (int, error) {
	ended := c.done == c.limit
	if !c.opts.Autocommit && (c.done-c.committed == c.opts.CommitEvery || ended && c.done > c.committed) {
		return payloadCommit, c.commit()
	}
	if ended {
		return payloadWrite, ErrDone
	}
	r, err := c.session.ExecPrepared(c.statement, c.arguments())
	if err != nil {
		return payloadWrite, c.rollback(err)
	}
	if r.Affected == 0 {
		c.unchanged++
	}
	c.done++
	if c.opts.Autocommit {
		c.committed = c.done
	}
	return payloadWrite, nil
}

// arguments are those of the next statement.
func (c *payloadClient) arguments() []Arg {
	if c.updatesAll() {
		version := c.done
		if !c.opts.TablePerClient { // clients that share a table do not write the same
			version = c.index + c.done*c.stripes.parts
		}
		return append(c.args[:0], Bytes(c.values.value(c.written, c.opts.Rows, 1+uint64(version))))
	}
	row := c.stripes.row(c.index, c.place())
	if c.inserts() {
		return append(c.args[:0], Int(row), Bytes(c.values.value(c.written, row, 0)))
	}
	value := Bytes(c.values.value(c.written, row, 1+uint64(c.done/c.count)))
	if c.operation.keyLast {
		return append(c.args[:0], value, Int(row))
	}
	return append(c.args[:0], Int(row), value)
}

// place is the next of the client's rows.
func (c *payloadClient) place() int64 {
	high, low := bits.Mul64(uint64(c.done%c.count), c.step)
	return int64(bits.Rem64(high, low, uint64(c.count)))
}

func (c *payloadClient) commit() error {
	if _, err := c.session.Exec("COMMIT"); err != nil {
		return c.rollback(err)
	}
	c.committed = c.done
	return nil
}

// rollback goes back to the last commit, where an error may be followed by another
// try: the statements since then are gone.
func (c *payloadClient) rollback(err error) error {
	if !retried(errorNumber(err)) {
		return err
	}
	if _, failed := c.session.Exec("ROLLBACK"); failed != nil {
		return errors.Join(err, failed)
	}
	c.done = c.committed
	return err
}

// Close commits what the client was stopped at.
func (c *payloadClient) Close() error {
	if c.opts.Autocommit || c.done == c.committed {
		return nil
	}
	return c.commit()
}
