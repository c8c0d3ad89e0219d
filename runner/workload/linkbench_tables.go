package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"dbbench.dev/operator/runner/contract"
)

// The tables. Their names are the tool's.
const (
	linkTable  = "linktable"
	countTable = "counttable"
	nodeTable  = "nodetable"
)

const (
	// linkBenchPacket is the length up to which an INSERT of many rows grows, with which
	// long data may end it before it has loadBatch rows; linkBenchLongestRow that of a
	// node with the most data, in hexadecimal.
	linkBenchPacket     = 1 << 20
	linkBenchLongestRow = 2*contract.MaxNodeData + 1<<10
	// linkBenchChunk are the nodes of a part of the load (loader_chunk_size).
	linkBenchChunk = 2048
	// linkBenchHub is the number of links above which a node's are loaded apart from
	// those of its neighbours, so many to a part.
	linkBenchHub = 20000
	// linkBenchOldest is the age in milliseconds of the oldest link that is loaded.
	linkBenchOldest = 50 * 24 * 3600 * 1000
)

// keptNodes is the percentage of the loaded nodes that must be left for a graph to be
// used again: operations delete nodes, and a graph without them is another. One that is
// not to be loaded is taken as it is.
const keptNodes = 90

const (
	linkDefinition = "(id1 bigint(20) unsigned NOT NULL DEFAULT '0', id2 bigint(20) unsigned NOT NULL DEFAULT '0', " +
		"link_type bigint(20) unsigned NOT NULL DEFAULT '0', visibility tinyint(3) NOT NULL DEFAULT '0', " +
		"data varchar(255) NOT NULL DEFAULT '', time bigint(20) unsigned NOT NULL DEFAULT '0', " +
		"version int(11) unsigned NOT NULL DEFAULT '0', PRIMARY KEY (link_type, id1, id2), " +
		"KEY id1_type (id1, link_type, visibility, time, id2, version, data))"
	countDefinition = "(id bigint(20) unsigned NOT NULL DEFAULT '0', link_type bigint(20) unsigned NOT NULL DEFAULT '0', " +
		"count int(10) unsigned NOT NULL DEFAULT '0', time bigint(20) unsigned NOT NULL DEFAULT '0', " +
		"version bigint(20) unsigned NOT NULL DEFAULT '0', PRIMARY KEY (id, link_type))"
	nodeDefinition = "(id bigint(20) unsigned NOT NULL AUTO_INCREMENT, type int(10) unsigned NOT NULL, " +
		"version bigint(20) unsigned NOT NULL, time int(10) unsigned NOT NULL, data mediumtext NOT NULL, PRIMARY KEY (id))"
)

// linkBenchShape is what decides how the graph looks.
type linkBenchShape struct {
	StartID, MaxID             int64
	LinkTypes                  int32
	NLinksMax                  int64
	Engine                     string
	Partitions                 int32
	LinkDataSize, NodeDataSize int32
	LeftoverBug                bool
	Seed                       *int64
}

func (w *linkBench) shape() linkBenchShape {
	o := &w.opts
	return linkBenchShape{
		StartID: o.StartID, MaxID: o.MaxID, LinkTypes: o.LinkTypes, NLinksMax: o.NLinksMax,
		Engine: strings.ToLower(o.Engine), Partitions: o.Partitions,
		LinkDataSize: o.LinkDataSize, NodeDataSize: o.NodeDataSize, LeftoverBug: o.LeftoverBug, Seed: o.Seed,
	}
}

func (w *linkBench) dataset() *Dataset {
	l := linkBenchLoad{linkBench: w, hubs: w.hubPieces(), chunks: (w.graph.nodes + linkBenchChunk - 1) / linkBenchChunk}
	return &Dataset{
		Workload: "linkbench", Tables: []string{linkTable, countTable, nodeTable}, Loaders: int(w.opts.Loaders),
		Shape: w.shape(), Create: w.createTables, Check: w.check,
		Steps: []Step{
			{Name: "load nodes", Parts: l.chunks, Do: l.nodes, Undo: l.removeNodes},
			// What is left of a part of these is written over.
			{Name: "load links", Parts: int64(len(l.hubs)) + l.chunks, Do: l.links},
			{Name: "load counts", Parts: l.chunks, Do: l.counts},
		},
	}
}

func (w *linkBench) createTables(env *Env) error {
	options := "ENGINE=" + w.opts.Engine + " DEFAULT CHARSET=latin1" // data are bytes
	for _, t := range []struct{ name, definition string }{
		{nodeTable, nodeDefinition}, {countTable, countDefinition}, {linkTable, linkDefinition},
	} {
		if err := env.Tables.Create(t.name, t.definition, options, w.opts.Engine); err != nil {
			return err
		}
	}
	if w.opts.Partitions == 0 {
		return nil
	}
	return partitionLinks(env.Session, w.opts.Partitions)
}

// partitionLinks divides the empty table of links: nothing may follow the partitions in
// a CREATE TABLE, not even the mark of its owner.
func partitionLinks(s Session, partitions int32) error {
	_, err := s.Exec(fmt.Sprintf("ALTER TABLE %s PARTITION BY KEY (id1) PARTITIONS %d", linkTable, partitions))
	if n := errorNumber(err); n != 0 {
		return &contract.Failure{Class: contract.ClassPrepareFailed, MySQLError: n,
			Message: fmt.Sprintf("the table %s cannot be partitioned: %v", linkTable, err),
			Hint:    "choose an engine that has partitions and grant ALTER, or set spec.workload.linkbench.partitions to 0"}
	}
	return err
}

// check holds the number of rows against what was loaded. Operations add links and
// counts, and hide links, but remove none of their rows; they delete nodes, and add
// others beyond the last.
func (w *linkBench) check(env *Env) (damage string, err error) {
	links, counts := w.expected()
	nodes := w.graph.nodes * keptNodes / 100
	if env.Mode == contract.PrepareNever {
		nodes = 0
	}
	for _, t := range []struct {
		table, where string
		least        int64
	}{
		{nodeTable, fmt.Sprintf(" WHERE id BETWEEN %d AND %d", w.opts.StartID, w.opts.MaxID-1), nodes},
		{countTable, "", counts},
		{linkTable, "", links},
	} {
		var rows int64
		err := env.Session.Query("SELECT COUNT(*) FROM "+t.table+t.where, func(row Row) error {
			rows, _ = row.Int(0)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("count the rows of %s: %w", t.table, err)
		}
		if rows < t.least {
			return fmt.Sprintf("the table %s has %d of the rows that were loaded, and must have %d", t.table, rows, t.least), nil
		}
	}
	return "", nil
}

// expected is how many links and counts are loaded. Ranks of the same degree, which are
// most, are taken together.
func (w *linkBench) expected() (links, counts int64) {
	g := w.graph
	for rank := int64(0); rank < g.nodes; {
		degree := g.degreeOfRank(rank)
		next := g.firstBelow(degree, rank)
		links += (next - rank) * g.loaded(degree)
		for t := range g.types {
			if g.ofType(degree, t) > 0 {
				counts += next - rank
			}
		}
		rank = next
	}
	return links, counts
}

// firstBelow is the first rank after one of the degree that has less.
func (g *linkGraph) firstBelow(degree, rank int64) int64 {
	low, high := rank+1, g.nodes
	for low < high {
		if middle := low + (high-low)/2; g.degreeOfRank(middle) >= degree {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// hubPiece are links of one node, counted over all types.
type hubPiece struct{ id, first, end int64 }

// hubPieces divides the links of the nodes that have very many.
func (w *linkBench) hubPieces() (pieces []hubPiece) {
	g := w.graph
	for rank := range g.nodes {
		degree := g.degreeOfRank(rank)
		if degree <= linkBenchHub {
			break
		}
		id, end := g.start+g.ranks.place(rank), g.loaded(degree)
		for first := int64(0); first < end; first += linkBenchHub {
			pieces = append(pieces, hubPiece{id, first, min(first+linkBenchHub, end)})
		}
	}
	return pieces
}

// linkBenchLoad fills the tables.
type linkBenchLoad struct {
	*linkBench
	hubs   []hubPiece
	chunks int64
}

// chunk are the nodes of a part.
func (l linkBenchLoad) chunk(i int64) (first, end int64) {
	first = l.graph.start + i*linkBenchChunk
	return first, min(first+linkBenchChunk, l.graph.start+l.graph.nodes)
}

// rng is that of a part of a step.
func (l linkBenchLoad) rng(step, part int64) *rand.Rand {
	const ofParts = 1 << 63 // apart from the seeds of clients
	return rand.New(rand.NewPCG(l.seed, ofParts|uint64(step)<<56|uint64(part)))
}

// nodes loads with ids of its own: those that a server gives may leave gaps.
func (l linkBenchLoad) nodes(s Session, part int64) error {
	rng := l.rng(0, part)
	b := l.newBatch(s, "INSERT INTO nodetable (id, type, version, time, data) VALUES ", "")
	var data []byte
	first, end := l.chunk(part)
	for id := first; id < end; id++ {
		data = l.nodeData.next(rng, data)
		b.row().add("(").int(id).add(", ").int(linkBenchNodeType).add(", 1, ").int(linkBenchEpoch / 1000).add(", ").hex(data).add(")")
		if err := b.sendIfFull(); err != nil {
			return err
		}
	}
	return b.send()
}

func (l linkBenchLoad) removeNodes(s Session, part int64) error {
	first, end := l.chunk(part)
	_, err := s.Exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", nodeTable, first, end-1))
	return err
}

// links loads a piece of a node with very many links, or those of a chunk of others.
func (l linkBenchLoad) links(s Session, part int64) error {
	load := linkLoad{linkBenchLoad: l, rng: l.rng(1, part),
		batch: l.newBatch(s, insertLinks, " ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)")}
	if part < int64(len(l.hubs)) {
		h := l.hubs[part]
		if err := load.node(h.id, l.graph.degree(h.id), h.first, h.end); err != nil {
			return err
		}
		return load.batch.send()
	}
	first, end := l.chunk(part - int64(len(l.hubs)))
	for id := first; id < end; id++ {
		degree := l.graph.degree(id)
		if degree > linkBenchHub {
			continue
		}
		if err := load.node(id, degree, 0, l.graph.loaded(degree)); err != nil {
			return err
		}
	}
	return load.batch.send()
}

// linkLoad is the loading of a part's links.
type linkLoad struct {
	linkBenchLoad
	rng   *rand.Rand
	batch *linkBatch
	data  []byte
}

// node loads the links from first to before end of a node, counted over all types.
func (l *linkLoad) node(id, degree, first, end int64) error {
	var before int64 // links of the types before
	for t := range l.graph.types {
		n := l.graph.ofType(degree, t)
		for j := max(first-before, 0); j < min(end-before, n); j++ {
			l.data = l.linkData.next(l.rng, l.data)
			time := linkBenchEpoch - l.rng.Int64N(linkBenchOldest)
			l.batch.row().link(id, id+j, linkBenchFirstType+t, l.data, time)
			if err := l.batch.sendIfFull(); err != nil {
				return err
			}
		}
		before += n
	}
	return nil
}

func (l linkBenchLoad) counts(s Session, part int64) error {
	b := l.newBatch(s, "REPLACE INTO counttable (id, link_type, count, time, version) VALUES ", "")
	first, end := l.chunk(part)
	for id := first; id < end; id++ {
		degree := l.graph.degree(id)
		for t := range l.graph.types {
			n := l.graph.ofType(degree, t)
			if n == 0 {
				continue
			}
			b.row().add("(").int(id).add(", ").int(linkBenchFirstType + t).add(", ").int(n).add(", ").int(linkBenchEpoch).add(", 0)")
			if err := b.sendIfFull(); err != nil {
				return err
			}
		}
	}
	return b.send()
}

// linkBatch is a statement of many rows.
type linkBatch struct {
	session    Session
	head, tail string
	most       int32 // rows
	rows       int32
	text       sqlText
}

func (l linkBenchLoad) newBatch(s Session, head, tail string) *linkBatch {
	return &linkBatch{session: s, head: head, tail: tail, most: l.opts.LoadBatch}
}

// row begins another row.
func (b *linkBatch) row() *sqlText {
	if b.rows++; b.rows == 1 {
		return b.text.begin(b.head)
	}
	return b.text.add(", ")
}

func (b *linkBatch) sendIfFull() error {
	if b.rows < b.most && len(b.text.bytes) < linkBenchPacket {
		return nil
	}
	return b.send()
}

// send sends the rows, if there are any.
func (b *linkBatch) send() error {
	if b.rows == 0 {
		return nil
	}
	b.rows = 0
	_, err := b.session.Exec(b.text.add(b.tail).text())
	return err
}
