package workload

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

const (
	// listLimit is how many links a list gives at most.
	listLimit = 10000
	// historyShare is the share of lists that ask for what came before such a list.
	historyShare = 0.003
	// historyLimit is how many lists with more links a client remembers.
	historyLimit = 2048

	// A request for links asks for 1 to mostLinks of them, geometric with getProbability.
	mostLinks      = 128
	getProbability = 0.382
	// uniqueTries is how often a link is drawn that was drawn before.
	uniqueTries = 100
)

const (
	insertLinks = "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) VALUES "
	selectLinks = "SELECT id1, id2, link_type, visibility, data, time, version FROM linktable "
)

// Rows that an INSERT of a link changed.
const (
	linkInserted = 1
	linkShown    = 2 // it was there, and hidden
)

// linkBenchClient is a client of linkbench. It reads in autocommit mode with one session
// and changes data in transactions with the other, whose last statement brings its
// COMMIT with it.
type linkBenchClient struct {
	*linkBench
	rng      *rand.Rand
	ro, rw   Session
	now      int64 // in milliseconds; goes on with each event
	failures int64

	lastFailure error

	again     bool // the event before failed and is to be done once more
	operation int
	text      sqlText

	// What the operation was drawn to do.
	id1, id2, linkType int64
	id2s               []int64
	data               []byte
	historyAt          int // of a list that begins where another ended, -1 otherwise

	history    []linkList
	rows       int64 // of the query
	last       int64 // time of its link listLimit
	visibility int64 // of the link that was looked at

	// These are methods, bound once.
	listed, counted, looked RowFunc

	found, notFound, rowsListed, historyQueries int64
}

// linkList is a list of links of which there may be more, up to a time.
type linkList struct{ id1, linkType, time int64 }

func (c *linkBenchClient) Open(sessions []Session) error {
	c.ro, c.rw = sessions[0], sessions[1]
	return c.begin()
}

// begin has changes committed by statements that say so.
func (c *linkBenchClient) begin() error {
	_, err := c.rw.Exec("SET autocommit = 0")
	return err
}

// Close has nothing to do: each operation has committed or rolled back.
func (c *linkBenchClient) Close() error { return nil }

// gaveUp reports whether more of the client's operations have failed than may.
func (c *linkBenchClient) gaveUp() bool {
	most := int64(c.opts.MaxFailedRequests)
	return most >= 0 && c.failures > most
}

func (c *linkBenchClient) Event() (int, error) {
	if c.gaveUp() {
		return c.operation, ErrDone
	}
	if !c.again {
		c.now++
		c.draw()
	}
	c.again = false
	if err := c.do(); err != nil {
		return c.operation, c.recover(err)
	}
	return c.operation, nil
}

// recover brings the sessions into a state in which they can go on, and returns the
// event's error. As in the tool, what is not to be run again gets new connections.
func (c *linkBenchClient) recover(err error) error {
	if lockFailed(err) {
		// A lock that was waited for too long leaves the transaction open.
		_, failed := c.rw.Exec("ROLLBACK")
		if failed == nil {
			c.again = true
			return err
		}
		err = failed
	}
	c.failures++
	c.lastFailure = err
	if c.gaveUp() {
		return err
	}
	for _, reconnect := range []func() error{c.ro.Reconnect, c.rw.Reconnect, c.begin} {
		if failed := reconnect(); failed != nil {
			return &reconnectError{failed}
		}
	}
	return err
}

// draw decides on an operation and all that it works on.
func (c *linkBenchClient) draw() {
	c.operation = c.drawOperation()
	switch c.operation {
	case linkBenchAddLink:
		c.drawChange(existsToAdd)
	case linkBenchUpdateLink:
		c.drawChange(existsToUpdate)
	case linkBenchDeleteLink:
		c.drawLink(c.writes.id(c.rng), existsToDelete)
	case linkBenchCountLink:
		c.drawLink(c.reads.id(c.rng), existsToGet)
	case linkBenchGetLink:
		c.drawLinks()
	case linkBenchGetLinkList:
		c.drawList()
	case linkBenchAddNode:
		c.data = c.nodeData.next(c.rng, c.data)
	case linkBenchUpdateNode:
		c.id1 = c.nodeUpdates.id(c.rng)
		c.data = c.nodeData.next(c.rng, c.data)
	case linkBenchDeleteNode:
		c.id1 = c.graph.start + c.rng.Int64N(c.graph.nodes)
	default:
		c.id1 = c.nodeReads.id(c.rng)
	}
}

func (c *linkBenchClient) drawOperation() int {
	u := c.rng.Float64() * 100
	operation := 0
	for operation < linkBenchOperations-1 && u >= c.limits[operation] {
		operation++
	}
	return operation
}

func (c *linkBenchClient) drawChange(exists float64) {
	c.drawLink(c.writes.id(c.rng), exists)
	c.data = c.linkData.next(c.rng, c.data)
}

// drawLink draws a link of a node that was loaded with the given chance.
func (c *linkBenchClient) drawLink(id1 int64, exists float64) {
	c.drawType(id1)
	c.id2 = id1 + c.rng.Int64N(c.span(exists))
}

func (c *linkBenchClient) drawType(id1 int64) {
	c.id1 = id1
	c.linkType = c.rng.Int64N(c.graph.types)
}

// span is how far links are drawn for one of them to exist with the given chance.
func (c *linkBenchClient) span(exists float64) int64 {
	links := c.graph.ofType(c.graph.degree(c.id1), c.linkType)
	return max(int64(math.Ceil(float64(links)/exists)), 1)
}

// drawLinks draws several links of a node.
func (c *linkBenchClient) drawLinks() {
	c.drawType(c.reads.id(c.rng))
	n, span := geometric(c.rng, getProbability, mostLinks), c.span(existsToGet)
	c.id2s = c.id2s[:0]
	for i := range n {
		id2 := c.id1 + int64(i) // all of them, where there are no more
		if span > int64(n) {
			id2 = c.drawUnique(span)
		}
		c.id2s = append(c.id2s, id2)
	}
}

func (c *linkBenchClient) drawUnique(span int64) (id2 int64) {
	for range uniqueTries {
		id2 = c.id1 + c.rng.Int64N(span)
		if !slices.Contains(c.id2s, id2) {
			break
		}
	}
	return id2
}

func (c *linkBenchClient) drawList() {
	if c.historyAt = -1; c.rng.Float64() < historyShare && len(c.history) > 0 {
		c.historyAt = c.rng.IntN(len(c.history))
		return
	}
	c.drawType(c.reads.id(c.rng))
}

// do does what was drawn.
func (c *linkBenchClient) do() error {
	switch c.operation {
	case linkBenchAddLink, linkBenchUpdateLink:
		return c.putLink()
	case linkBenchDeleteLink:
		return c.hideLink()
	case linkBenchCountLink:
		return c.ro.Query(c.text.begin("SELECT count FROM counttable WHERE id = ").int(c.id1).
			add(" AND link_type = ").linkType(c.linkType).text(), nil)
	case linkBenchGetLink:
		return c.getLinks()
	case linkBenchGetLinkList:
		return c.getList()
	case linkBenchAddNode:
		return c.change(c.text.begin("INSERT INTO nodetable (type, version, time, data) VALUES (").int(linkBenchNodeType).
			add(", 1, ").int(c.now / 1000).add(", ").hex(c.data).add("); COMMIT"))
	case linkBenchUpdateNode:
		return c.change(c.text.begin("UPDATE nodetable SET version = 2, time = ").int(c.now / 1000).
			add(", data = ").hex(c.data).whereNode(c.id1).add("; COMMIT"))
	case linkBenchDeleteNode:
		return c.change(c.text.begin("DELETE FROM nodetable").whereNode(c.id1).add("; COMMIT"))
	}
	return c.ro.Query(c.text.begin("SELECT id, type, version, time, data FROM nodetable WHERE id = ").int(c.id1).text(), nil)
}

func (c *linkBenchClient) change(t *sqlText) error {
	_, err := c.rw.Exec(t.text())
	return err
}

// putLink adds a link, or updates the one that is there. The lock that the first
// statement takes on the link keeps its count right.
func (c *linkBenchClient) putLink() error {
	r, err := c.rw.Exec(c.text.begin(insertLinks).link(c.id1, c.id2, linkBenchFirstType+c.linkType, c.data, c.now).
		add(" ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)").text())
	if err != nil {
		return err
	}
	switch r.Affected {
	case linkInserted:
		return c.countOneMore("; COMMIT")
	case linkShown:
		if err := c.countOneMore(""); err != nil {
			return err
		}
	}
	return c.change(c.text.begin("UPDATE linktable SET visibility = 1, data = ").hex(c.data).add(", time = ").int(c.now).
		add(", version = 0").whereLink(c).add("; COMMIT"))
}

func (c *linkBenchClient) countOneMore(end string) error {
	return c.change(c.text.begin("INSERT INTO counttable (id, link_type, count, time, version) VALUES (").int(c.id1).
		add(", ").linkType(c.linkType).add(", 1, ").int(c.now).
		add(", 0) ON DUPLICATE KEY UPDATE count = count + 1, version = version + 1, time = ").int(c.now).add(end))
}

// hideLink deletes a link, of which its row stays.
func (c *linkBenchClient) hideLink() error {
	c.visibility = 0
	err := c.rw.Query(c.text.begin("SELECT visibility FROM linktable").whereLink(c).add(" FOR UPDATE").text(), c.looked)
	if err != nil {
		return err
	}
	if c.visibility == 1 {
		if err := c.change(c.text.begin("UPDATE linktable SET visibility = 0").whereLink(c)); err != nil {
			return err
		}
		if err := c.countOneLess(); err != nil {
			return err
		}
	}
	return c.change(c.text.begin("COMMIT"))
}

func (c *linkBenchClient) noteVisibility(row Row) error {
	c.visibility, _ = row.Int(0)
	return nil
}

func (c *linkBenchClient) countOneLess() error {
	return c.change(c.text.begin("INSERT INTO counttable (id, link_type, count, time, version) VALUES (").int(c.id1).
		add(", ").linkType(c.linkType).add(", 0, ").int(c.now).
		add(", 0) ON DUPLICATE KEY UPDATE count = IF(count = 0, 0, count - 1), time = ").int(c.now).add(", version = version + 1"))
}

func (c *linkBenchClient) getLinks() error {
	t := c.text.begin(selectLinks).add("WHERE id1 = ").int(c.id1).add(" AND link_type = ").linkType(c.linkType).add(" AND id2 IN (")
	for i, id2 := range c.id2s {
		if i > 0 {
			t.add(", ")
		}
		t.int(id2)
	}
	c.rows = 0
	if err := c.ro.Query(t.add(")").text(), c.counted); err != nil {
		return err
	}
	c.found += c.rows
	c.notFound += int64(len(c.id2s)) - c.rows
	return nil
}

func (c *linkBenchClient) noteFound(Row) error {
	c.rows++
	return nil
}

// getList asks for a node's newest links of a type, or, where a list was longer than
// its limit, for those that come after it.
func (c *linkBenchClient) getList() error {
	list := linkList{c.id1, c.linkType, math.MaxInt64}
	var offset int64
	if c.historyAt >= 0 {
		list, offset = c.history[c.historyAt], 1
		c.historyQueries++
	}
	c.rows = 0
	err := c.ro.Query(c.text.begin(selectLinks).add("FORCE INDEX (id1_type) WHERE id1 = ").int(list.id1).
		add(" AND link_type = ").linkType(list.linkType).add(" AND time >= 0 AND time <= ").int(list.time).
		add(" AND visibility = 1 ORDER BY time DESC LIMIT ").int(offset).add(",").int(listLimit).text(), c.listed)
	if err != nil {
		return err
	}
	c.rowsListed += c.rows
	list.time = c.last
	c.remember(list)
	return nil
}

// noteListed keeps the time of the last link that a list gives.
func (c *linkBenchClient) noteListed(row Row) error {
	const time = 5
	if c.rows++; c.rows == listLimit {
		c.last, _ = row.Int(time)
	}
	return nil
}

// remember keeps a list that may have more links, once for each node and type, and
// forgets one that has not.
func (c *linkBenchClient) remember(list linkList) {
	full := c.rows == listLimit
	switch {
	case c.historyAt >= 0 && full:
		c.history[c.historyAt] = list
	case c.historyAt >= 0:
		end := len(c.history) - 1
		c.history[c.historyAt] = c.history[end]
		c.history = c.history[:end]
	case !full || c.remembers(list):
	case len(c.history) < historyLimit:
		c.history = append(c.history, list)
	default:
		c.history[c.rng.IntN(historyLimit)] = list
	}
}

func (c *linkBenchClient) remembers(list linkList) bool {
	for i := range c.history {
		if c.history[i].id1 == list.id1 && c.history[i].linkType == list.linkType {
			return true
		}
	}
	return false
}

// sqlText is a statement that is put together in a buffer which is used again.
type sqlText struct{ bytes []byte }

func (t *sqlText) begin(s string) *sqlText {
	t.bytes = append(t.bytes[:0], s...)
	return t
}

func (t *sqlText) add(s string) *sqlText {
	t.bytes = append(t.bytes, s...)
	return t
}

func (t *sqlText) int(n int64) *sqlText {
	t.bytes = strconv.AppendInt(t.bytes, n, 10)
	return t
}

// hex adds bytes. In hexadecimal they mean the same in every sql_mode and character
// set; the tool does so as well, but for texts of letters and digits alone.
func (t *sqlText) hex(b []byte) *sqlText {
	t.add("x'")
	t.bytes = hex.AppendEncode(t.bytes, b)
	return t.add("'")
}

// linkType adds a type that is counted from 0.
func (t *sqlText) linkType(n int64) *sqlText { return t.int(linkBenchFirstType + n) }

// link adds the row of a link that is visible.
func (t *sqlText) link(id1, id2, linkType int64, data []byte, time int64) *sqlText {
	return t.add("(").int(id1).add(", ").int(id2).add(", ").int(linkType).add(", 1, ").hex(data).add(", ").int(time).add(", 0)")
}

// whereLink adds the condition for the client's link.
func (t *sqlText) whereLink(c *linkBenchClient) *sqlText {
	return t.add(" WHERE id1 = ").int(c.id1).add(" AND id2 = ").int(c.id2).add(" AND link_type = ").linkType(c.linkType)
}

func (t *sqlText) whereNode(id int64) *sqlText {
	return t.add(" WHERE id = ").int(id).add(" AND type = ").int(linkBenchNodeType)
}

// text lives until the next begin.
func (t *sqlText) text() string { return textOf(t.bytes) }
