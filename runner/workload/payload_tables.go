package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"dbbench.dev/operator/runner/contract"
)

const (
	// payloadPacket is the length in bytes up to which an INSERT of the load grows.
	payloadPacket = 512 << 10
	// payloadPart and payloadPartRows bound what is loaded in one transaction.
	payloadPart     = 4 << 20
	payloadPartRows = 20000
	// payloadChunk and payloadChunkRows bound what one statement of the digest reads.
	payloadChunk     = 64 << 20
	payloadChunkRows = 100000
	payloadLoaders   = 4
	// rowOverhead is the length of a row in an INSERT without its value.
	rowOverhead = 32
)

// payloadShape is what decides how the tables look before the run.
type payloadShape struct {
	Rows         int64
	Tables       int
	Lengths      payloadShapeLengths
	Engine       string
	Key, Column  string
	VarChar      int64 `json:",omitempty"`
	Alphabet     string
	LargestValue int64 // decides how large the pool is that the values are cut from
	Seed         int64
}

type payloadShapeLengths struct{ Shortest, Longest int64 }

// dataset is what is there before the run: of Insert, empty tables.
func (p *payload) dataset(env *Env) *Dataset {
	n := p.tableCount(env.Clients)
	load := payloadLoad{payload: p, stripes: stripes{p.opts.Rows, int64(n)}}
	load.rows = max(1, min(payloadPartRows, payloadPart/p.loaded.longest))
	load.parts = (load.stripes.count(0) + load.rows - 1) / load.rows
	shape := payloadShape{
		Rows: p.opts.Rows, Tables: n, Lengths: payloadShapeLengths{p.loaded.shortest, p.loaded.longest},
		Engine: strings.ToLower(p.opts.Engine), Key: p.opts.KeyType, Column: p.opts.ColumnType(), VarChar: p.varChar(),
		Alphabet: p.opts.Alphabet, LargestValue: int64(p.opts.LargestSize()), Seed: p.opts.Seed,
	}
	d := &Dataset{Workload: "payload", Tables: p.tableNames(n), Create: load.create, Check: load.check, Loaders: payloadLoaders}
	if p.loaded.longest > payloadPart {
		d.Loaders = 1 // each holds a value several times
	}
	if p.inserts() {
		shape.Rows = 0
	} else {
		d.Steps = []Step{{Name: "load rows", Parts: load.parts * int64(n), Do: load.do, Undo: load.undo}}
	}
	d.Shape = shape
	return d
}

// Prepare makes the tables and loads the values that Update, UpdateAll and Replace
// find. Those change them, so that the data serves one run; of a load for several runs
// remains that it resumes where it was cut off.
func (p *payload) Prepare(env *Env) error {
	if err := p.dataset(env).Prepare(env); err != nil {
		return err
	}
	if env.Mode != contract.PreparePerDataset {
		return nil
	}
	if _, err := env.Session.Exec("DELETE FROM " + datasetTable + " WHERE step = 0"); err != nil {
		return fmt.Errorf("note that the data is used: %w", err)
	}
	return nil
}

// varChar is the width of a column VarChar, 0 of others.
func (p *payload) varChar() int64 {
	if p.opts.ColumnType() != contract.ColumnVarChar {
		return 0
	}
	return max(255, int64(p.opts.LargestSize()))
}

func (p *payload) definition() string {
	key := "BIGINT UNSIGNED"
	if p.opts.KeyType == contract.KeyInt {
		key = "INT"
	}
	column := strings.ToUpper(p.opts.ColumnType())
	if n := p.varChar(); n > 0 {
		column = fmt.Sprintf("VARCHAR(%d)", n)
	}
	return "(id " + key + " NOT NULL, data " + column + " NOT NULL, PRIMARY KEY (id))"
}

// payloadLoad makes and fills the tables.
type payloadLoad struct {
	*payload
	stripes stripes // over the tables
	rows    int64   // of a part
	parts   int64   // of a table
}

func (l payloadLoad) create(env *Env) error {
	for i := range l.stripes.parts {
		select {
		case <-env.Stopped:
			return errStopped
		default:
		}
		if err := env.Tables.Create(l.table(i), l.definition(), "ENGINE = "+l.opts.Engine, l.opts.Engine); err != nil {
			return err
		}
	}
	return nil
}

// bounds are the table of a part, and its first place in the table and the one after
// its last.
func (l payloadLoad) bounds(part int64) (table, from, to int64) {
	table, from = part/l.parts, part%l.parts*l.rows
	return table, from, min(from+l.rows, l.stripes.count(table))
}

func (l payloadLoad) do(s Session, part int64) error {
	table, from, to := l.bounds(part)
	head := "INSERT INTO " + l.table(table) + " (id, data) VALUES "
	text := make([]byte, 0, max(payloadPacket, l.literalLength(l.loaded.longest)))
	for i := from; i < to; i++ {
		row := l.stripes.row(table, i)
		value := l.values.value(l.loaded, row, 0)
		if len(text) > 0 && len(text)+l.literalLength(int64(len(value))) > payloadPacket {
			if _, err := s.Exec(textOf(text)); err != nil {
				return err
			}
			text = text[:0]
		}
		if len(text) == 0 {
			text = append(text, head...)
		} else {
			text = append(text, ", "...)
		}
		text = l.appendRow(text, row, value)
	}
	if len(text) == 0 {
		return nil
	}
	_, err := s.Exec(textOf(text))
	return err
}

func (p *payload) appendRow(text []byte, row int64, value []byte) []byte {
	text = append(strconv.AppendInt(append(text, '('), row, 10), ", "...)
	if p.opts.Alphabet == contract.AlphabetBinary {
		text = append(hex.AppendEncode(append(text, "X'"...), value), '\'')
	} else {
		text = append(append(append(text, '\''), value...), '\'')
	}
	return append(text, ')')
}

// literalLength is that of a row with a value of n bytes, at most.
func (p *payload) literalLength(n int64) int {
	if p.opts.Alphabet == contract.AlphabetBinary {
		n *= 2
	}
	return int(n) + rowOverhead + len(payloadTable)
}

// undo removes what an engine without transactions may hold of a part.
func (l payloadLoad) undo(s Session, part int64) error {
	table, from, to := l.bounds(part)
	if from >= to {
		return nil
	}
	_, err := s.Exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d",
		l.table(table), l.stripes.row(table, from), l.stripes.row(table, to-1)))
	return err
}

func (l payloadLoad) check(env *Env) (damage string, err error) {
	for table := range l.stripes.parts {
		want := [3]int64{} // rows, least and greatest id
		if n := l.stripes.count(table); n > 0 && !l.inserts() {
			want = [3]int64{n, table, l.stripes.row(table, n-1)}
		}
		var got [3]int64
		err := env.Session.Query("SELECT COUNT(*), MIN(id), MAX(id) FROM "+l.table(table), func(row Row) error {
			for i := range got {
				got[i], _ = row.Int(i) // NULL in an empty table
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("look at the table %s: %w", l.table(table), err)
		}
		if got != want {
			return fmt.Sprintf("the table %s has %d rows with ids %d to %d in place of %d with ids %d to %d",
				l.table(table), got[0], got[1], got[2], want[0], want[1], want[2]), nil
		}
	}
	return "", nil
}

// countRows is the number of rows of all tables.
func countRows(env *Env, tables []string) (rows int64, err error) {
	for _, table := range tables {
		err := env.Session.Query("SELECT COUNT(*) FROM "+table, func(row Row) error {
			n, _ := row.Int(0)
			rows += n
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("count the rows of %s: %w", table, err)
		}
	}
	return rows, nil
}

// digest is a checksum of all keys and values, 64 hexadecimal digits: equal for equal
// content, whatever the server and however the rows lie in tables. The server digests
// the values and the runner adds the digests of the rows up modulo 2^256, which no
// order changes: neither sorts, and the runner holds one row at a time.
func (p *payload) digest(env *Env, tables []string) (string, error) {
	column := "data"
	if p.varChar() > 0 {
		column = "CONVERT(data USING utf8mb4)" // the schema's character set has no part in it
	}
	var sum contentSum
	chunk := max(1, min(payloadChunkRows, payloadChunk/max(p.loaded.longest, p.written.longest)))
	for _, table := range tables {
		for from := int64(0); from < p.opts.Rows; from += chunk * int64(len(tables)) {
			select {
			case <-env.Stopped:
				return "", errStopped
			default:
			}
			query := fmt.Sprintf("SELECT id, SHA2(%s, 256) FROM %s WHERE id BETWEEN %d AND %d",
				column, table, from, from+chunk*int64(len(tables))-1)
			if err := env.Session.Query(query, sum.add); err != nil {
				return "", fmt.Errorf("digest the content of %s: %w", table, err)
			}
		}
	}
	return sum.String(), nil
}

// contentSum adds up digests of rows.
type contentSum struct {
	rows  uint64
	words [4]uint64 // the least significant first
	text  []byte
}

// add takes a key and the digest of its value.
func (s *contentSum) add(row Row) error {
	s.text = row.Append(append(row.Append(s.text[:0], 0), ':'), 1)
	h := sha256.Sum256(s.text)
	var carry uint64
	for i := range s.words {
		s.words[i], carry = bits.Add64(s.words[i], binary.LittleEndian.Uint64(h[8*i:]), carry)
	}
	s.rows++
	return nil
}

func (s *contentSum) String() string {
	b := binary.LittleEndian.AppendUint64(nil, s.rows)
	for _, w := range s.words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
