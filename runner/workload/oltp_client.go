package workload

import (
	"math/rand/v2"
	"strconv"
	"unsafe"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload/random"
)

// Groups of eleven digits in the columns c (119 characters) and pad (59).
const (
	oltpGroups    = 10
	oltpPadGroups = 5
)

// oltpUniqueSeed is the same for all runners that share a load: their ids must differ.
const oltpUniqueSeed = 0

// erUnsupportedPS says that a statement cannot be prepared.
const erUnsupportedPS = 1295

// oltpClient is a client of oltp. What an event needs is kept in buffers of its own.
type oltpClient struct {
	*oltp
	rng *rand.Rand
	// ids draws from all ids; segment from the client's part of them, for the selects
	// whose ranges are not to overlap.
	ids, segment *random.Ints
	unique       *random.Unique

	session Session
	// handles are the prepared statements, by kind and table; nil where the text is sent.
	handles            [oltpKinds][]Handle
	begins, commits    control
	table              int // of the statements that follow
	args               []Arg
	text, column, pads []byte

	events int64 // since the last reconnect
	bulk   bulk
}

// control is BEGIN or COMMIT.
type control struct {
	text     string
	handle   Handle
	prepared bool
}

func (o *oltp) NewClient(i, n int) Client {
	rng := rand.New(rand.NewPCG(o.seed, uint64(i)+1))
	length := float64(o.opts.TableSize) / float64(n)
	begin := length * float64(i)
	return &oltpClient{
		oltp: o, rng: rng,
		ids:     o.distribution.Ints(rng, 1, o.opts.TableSize),
		segment: o.distribution.Ints(rng, int64(begin), int64(begin+length)),
		unique:  random.NewUnique(oltpUniqueSeed, i, n),
		begins:  control{text: o.begin}, commits: control{text: o.commit},
		bulk: bulk{head: "INSERT INTO " + o.table(i) + " VALUES"},
	}
}

func (c *oltpClient) Open(sessions []Session) error {
	c.session = sessions[0]
	return c.prepare()
}

// prepare has the server prepare all that an event needs, as often as there is a new
// connection.
func (c *oltpClient) prepare() error {
	if !c.prepares() {
		return nil
	}
	for _, kind := range c.prepared() {
		c.handles[kind] = c.handles[kind][:0]
		for i := range int(c.opts.Tables) {
			h, err := c.session.Prepare(c.templates[kind].prepared(c.oltp.table(i)))
			if err != nil {
				return err
			}
			c.handles[kind] = append(c.handles[kind], h)
		}
	}
	if err := c.prepareControl(&c.begins); err != nil {
		return err
	}
	return c.prepareControl(&c.commits)
}

// prepareControl leaves it at the text where the server, or a proxy before it, does not
// prepare such statements.
func (c *oltpClient) prepareControl(t *control) (err error) {
	if t.text == "" {
		return nil
	}
	t.handle, err = c.session.Prepare(t.text)
	t.prepared = err == nil
	if errorNumber(err) == erUnsupportedPS {
		return nil
	}
	return err
}

func (c *oltpClient) Event() (int, error) {
	if c.is05() {
		c.drawTable()
	}
	if err := c.script.event(c); err != nil {
		return 0, c.recover(err)
	}
	return 0, c.reconnectIfDue()
}

// recover brings the session into a state in which the event can be run again, where
// that will be done, and returns the event's error. A lock that was waited for too long
// leaves the transaction open: without ROLLBACK the next BEGIN commits half of it.
func (c *oltpClient) recover(err error) error {
	switch {
	case !c.ignores(err):
	case errorNumber(err) == 0:
		if failed := c.reconnect(); failed != nil {
			return failed
		}
	case c.begin != "" && !c.opts.NoRollbackOnRetry:
		if _, failed := c.session.Exec("ROLLBACK"); failed != nil {
			return failed
		}
	}
	return err
}

func (c *oltpClient) reconnectIfDue() error {
	if c.opts.ReconnectEvery == 0 {
		return nil
	}
	if c.events++; c.events < c.opts.ReconnectEvery {
		return nil
	}
	c.events = 0
	return c.reconnect()
}

func (c *oltpClient) reconnect() error {
	err := c.session.Reconnect()
	if err == nil {
		err = c.prepare()
	}
	if err != nil {
		return &reconnectError{err}
	}
	return nil
}

// Close sends the rows of a bulk that are left.
func (c *oltpClient) Close() error {
	if c.opts.Script == contract.OLTPBulkInsert {
		return c.bulk.flush(c.session)
	}
	return nil
}

func (c *oltpClient) readOnly() error {
	return c.transaction((*oltpClient).reads, (*oltpClient).nothing)
}
func (c *oltpClient) writeOnly() error {
	return c.transaction((*oltpClient).nothing, (*oltpClient).writes)
}
func (c *oltpClient) readWrite() error {
	return c.transaction((*oltpClient).reads, (*oltpClient).writes)
}

func (c *oltpClient) nothing() error { return nil }

func (c *oltpClient) transaction(reads, writes func(*oltpClient) error) error {
	if err := c.control(&c.begins); err != nil {
		return err
	}
	if err := reads(c); err != nil {
		return err
	}
	if err := writes(c); err != nil {
		return err
	}
	return c.control(&c.commits)
}

func (c *oltpClient) control(t *control) (err error) {
	switch {
	case t.text == "":
	case t.prepared:
		_, err = c.session.ExecPrepared(t.handle, nil)
	default:
		_, err = c.session.Exec(t.text)
	}
	return err
}

func (c *oltpClient) reads() error {
	if err := c.pointSelects(); err != nil || !c.opts.RangeSelects {
		return err
	}
	if err := c.ranges(oltpSimple, c.opts.SimpleRanges); err != nil {
		return err
	}
	if err := c.ranges(oltpSum, c.opts.SumRanges); err != nil {
		return err
	}
	if err := c.ranges(oltpOrder, c.opts.OrderRanges); err != nil {
		return err
	}
	return c.ranges(oltpDistinct, c.opts.DistinctRanges)
}

func (c *oltpClient) writes() error {
	if err := c.indexUpdates(); err != nil {
		return err
	}
	if err := c.nonIndexUpdates(); err != nil {
		return err
	}
	return c.deleteInserts()
}

// group begins statements of one kind, which share a table. In 0.5 all of an event
// share it.
func (c *oltpClient) group() {
	if !c.is05() {
		c.drawTable()
	}
}

func (c *oltpClient) drawTable() {
	if c.opts.Tables > 1 {
		c.table = c.rng.IntN(int(c.opts.Tables))
	}
}

func (c *oltpClient) pointSelects() error {
	c.group()
	for range c.opts.PointSelects {
		if err := c.query(oltpPoint, Int(c.ids.Next())); err != nil {
			return err
		}
	}
	return nil
}

// ranges ends a range where its size does, which may be beyond the last id.
func (c *oltpClient) ranges(kind oltpKind, n int32) error {
	c.group()
	for range n {
		low := c.ids.Next()
		high := low + c.opts.RangeSize - 1
		if c.is05() {
			high = low // the statement adds the size
		}
		if err := c.query(kind, Int(low), Int(high)); err != nil {
			return err
		}
	}
	return nil
}

func (c *oltpClient) indexUpdates() error {
	c.group()
	for range c.opts.IndexUpdates {
		if err := c.exec(oltpIndexUpdate, Int(c.ids.Next())); err != nil {
			return err
		}
	}
	return nil
}

func (c *oltpClient) nonIndexUpdates() error {
	c.group()
	for range c.opts.NonIndexUpdates {
		if err := c.exec(oltpNonIndexUpdate, c.columnC(), Int(c.ids.Next())); err != nil {
			return err
		}
	}
	return nil
}

func (c *oltpClient) deleteInserts() error {
	c.group()
	for range c.opts.DeleteInserts {
		id := c.ids.Next()
		if err := c.exec(oltpDelete, Int(id)); err != nil {
			return err
		}
		if err := c.exec(oltpInsert, Int(id), Int(c.ids.Next()), c.columnC(), c.columnPad()); err != nil {
			return err
		}
	}
	return nil
}

func (c *oltpClient) delete() error {
	c.group()
	return c.exec(oltpDelete, Int(c.ids.Next()))
}

func (c *oltpClient) insert() error {
	c.group()
	id := int64(0) // the server's choice
	if !c.opts.AutoIncrement {
		id = int64(c.unique.Next())
		if !c.is05() {
			id -= 1 << 31 // the column is signed
		}
	}
	return c.exec(oltpInsert, Int(id), Int(c.ids.Next()), c.columnC(), c.columnPad())
}

func (c *oltpClient) randomPoints() error {
	c.args = c.args[:0]
	for range c.opts.RandomPoints {
		c.args = append(c.args, Int(c.segment.Next()))
	}
	return c.query(oltpRandomPoints, c.args...)
}

func (c *oltpClient) randomRanges() error {
	c.args = c.args[:0]
	for range c.opts.NumberOfRanges {
		low := c.segment.Next()
		c.args = append(c.args, Int(low), Int(low+int64(c.opts.Delta)))
	}
	return c.query(oltpRandomRanges, c.args...)
}

// columnC draws a value of the column c. It lives until the next one is drawn.
func (c *oltpClient) columnC() Arg {
	c.column = random.AppendDigits(c.column[:0], c.rng, oltpGroups)
	return Text(textOf(c.column))
}

func (c *oltpClient) columnPad() Arg {
	c.pads = random.AppendDigits(c.pads[:0], c.rng, oltpPadGroups)
	return Text(textOf(c.pads))
}

// textOf is the buffer as a text, which lives until the buffer is used again. Sessions
// keep no text beyond a call.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// dropRow looks at no row. It stands where no receiver would do: from the second
// execution on MariaDB leaves out the descriptions of the columns, and the driver's way
// to skip a prepared statement's result takes rows for them. With fewer rows than
// columns it then waits for ever.
func dropRow(Row) error { return nil }

func (c *oltpClient) query(kind oltpKind, args ...Arg) error {
	c.args = append(c.args[:0], args...)
	if c.handles[kind] != nil {
		return c.session.QueryPrepared(c.handles[kind][c.table], c.args, dropRow)
	}
	return c.session.Query(c.render(kind), nil)
}

func (c *oltpClient) exec(kind oltpKind, args ...Arg) (err error) {
	c.args = append(c.args[:0], args...)
	if c.handles[kind] != nil {
		_, err = c.session.ExecPrepared(c.handles[kind][c.table], c.args)
		return err
	}
	_, err = c.session.Exec(c.render(kind))
	return err
}

// render puts the arguments into the text. It lives until the next one is rendered.
func (c *oltpClient) render(kind oltpKind) string {
	t := &c.templates[kind]
	c.text = append(c.text[:0], t.head...)
	c.text = c.appendTable(c.text, c.table)
	c.text = append(c.text, t.parts[0]...)
	for i, a := range c.args {
		c.text = appendLiteral(c.text, a)
		c.text = append(c.text, t.parts[i+1]...)
	}
	return textOf(c.text)
}

// appendLiteral appends a number, or a text of digits and dashes, in which nothing
// needs to be escaped.
func appendLiteral(dst []byte, a Arg) []byte {
	if a.kind == argInt {
		return strconv.AppendInt(dst, a.num, 10)
	}
	return append(append(append(dst, '\''), a.text...), '\'')
}

// bulk is an INSERT of many rows that grows until it fills a packet.
type bulk struct {
	head string
	text []byte // empty, or the head and the rows so far
	rows int64  // of all packets
}

// bulkInsert adds a row, after it has sent those that would make the packet too long
// with it: an event that fails has added nothing.
func (c *oltpClient) bulkInsert() error {
	b := &c.bulk
	const longest = len("(,),") + 2*len("9223372036854775807")
	if len(b.text)+longest > oltpPacket {
		if err := b.flush(c.session); err != nil {
			return err
		}
	}
	if len(b.text) == 0 {
		b.text = append(b.text, b.head...)
	} else {
		b.text = append(b.text, ',')
	}
	b.rows++
	b.text = append(b.text, '(')
	b.text = strconv.AppendInt(b.text, b.rows, 10)
	b.text = append(b.text, ',')
	b.text = strconv.AppendInt(b.text, b.rows, 10)
	b.text = append(b.text, ')')
	return nil
}

// flush sends the rows.
func (b *bulk) flush(s Session) error {
	if len(b.text) == 0 {
		return nil
	}
	if _, err := s.Exec(textOf(b.text)); err != nil {
		return err
	}
	b.text = b.text[:0]
	return nil
}
