package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload/random"
)

const (
	oltpTable = "sbtest"
	// oltpPacket is the length up to which an INSERT of many rows grows.
	oltpPacket = 512 << 10
	// oltpLongestRow is the length of a row in it, commas included.
	oltpLongestRow = 256
	// oltpPartRows are loaded in one transaction: some megabytes.
	oltpPartRows = 20000
	// oltpMaxRows is myisam-max-rows of 0.5, which it states for all engines.
	oltpMaxRows = 1000000
	// oltpRowBytes is what a row takes: id, k, c and pad.
	oltpRowBytes = 4 + 4 + 120 + 60
)

// In 0.5 the tables of RandomPoints and RandomRanges hold the same texts in all rows.
const (
	oltpFixedC   = " "
	oltpFixedPad = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt"
)

// erDupKeyName says that an index exists.
const erDupKeyName = 1061

// oltpShape is what decides how the tables look.
type oltpShape struct {
	Layout          string
	Tables          int
	Rows            int64
	Unsigned        bool
	BigInt          bool
	Engine, Options string
	AutoIncrement   bool
	Secondary       bool
	Index           bool
	// Range is what the column k is drawn from, by Distribution.
	Range        int64
	Distribution random.Distribution
	Seed         *int64
}

// The layouts of the tables.
const (
	oltpStandard = "standard" // id, k, c, pad
	oltpFixed    = "fixed"    // the same, in the one table of 0.5's random selects
	oltpBulk     = "bulk"     // id, k; a table for each client
)

func (o *oltp) layout() string {
	switch {
	case o.opts.Script == contract.OLTPBulkInsert:
		return oltpBulk
	case o.is05() && o.isRandomSelect():
		return oltpFixed
	}
	return oltpStandard
}

// shape describes the tables of a run with so many clients.
func (o *oltp) shape(clients int) oltpShape {
	s := oltpShape{
		Layout: o.layout(), Tables: int(o.opts.Tables), Rows: o.opts.TableSize, Unsigned: o.is05(), BigInt: o.opts.BigIntIDs,
		Engine: strings.ToLower(o.opts.Engine), Options: o.opts.CreateTableOptions, AutoIncrement: o.opts.AutoIncrement,
		Secondary: o.opts.Secondary, Index: o.opts.CreateSecondary,
		Range: o.opts.TableSize, Distribution: o.distribution, Seed: o.opts.Seed,
	}
	switch s.Layout {
	case oltpBulk:
		s.Tables, s.Rows, s.Index = clients, 0, false
	case oltpFixed:
		s.Secondary, s.Index = false, true
	}
	if o.opts.Script == contract.OLTPInsert && !o.opts.AutoIncrement {
		s.Rows = 0 // ids that the clients make would meet those of the load
	}
	return s
}

// table is the name of table i.
func (o *oltp) table(i int) string { return string(o.appendTable(nil, i)) }

func (o *oltp) appendTable(dst []byte, i int) []byte {
	dst = append(dst, oltpTable...)
	switch {
	case o.layout() == oltpFixed:
		return dst
	case o.layout() == oltpBulk && o.is05():
		return strconv.AppendInt(dst, int64(i), 10) // counts from 0
	}
	return strconv.AppendInt(dst, int64(i)+1, 10)
}

func (o *oltp) tables(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = o.table(i)
	}
	return names
}

// dataset is the tables of a run.
func (o *oltp) dataset(env *Env) *Dataset {
	shape := o.shape(env.Clients)
	l := oltpLoad{oltp: o, shape: shape, parts: (shape.Rows + oltpPartRows - 1) / oltpPartRows}
	d := &Dataset{
		Workload: "oltp", Shape: shape, Tables: o.tables(shape.Tables), Loaders: int(o.opts.Loaders),
		Create: l.create, Check: l.check,
		Steps: []Step{{Name: "load rows", Parts: l.parts * int64(shape.Tables), Do: l.load, Undo: l.remove}},
	}
	if shape.Index {
		d.Steps = append(d.Steps, Step{Name: "create indexes", Parts: int64(shape.Tables), Do: l.createIndex})
	}
	return d
}

// oltpLoad makes and fills the tables of a shape.
type oltpLoad struct {
	*oltp
	shape oltpShape
	parts int64 // of a table
}

func (l oltpLoad) create(env *Env) error {
	for i := range l.shape.Tables {
		select {
		case <-env.Stopped:
			return errStopped
		default:
		}
		if err := env.Tables.Create(l.table(i), l.definition(), l.options(), l.opts.Engine); err != nil {
			return err
		}
	}
	return nil
}

func (l oltpLoad) definition() string {
	integer, increment, key := "INTEGER", "", "PRIMARY KEY"
	if l.shape.BigInt {
		integer = "BIGINT"
	}
	if l.shape.Unsigned {
		integer += " UNSIGNED"
	}
	if l.shape.Layout == oltpBulk {
		return fmt.Sprintf("(id %s NOT NULL, k %s DEFAULT '0' NOT NULL, PRIMARY KEY (id))", integer, integer)
	}
	if l.shape.AutoIncrement {
		increment = " AUTO_INCREMENT"
	}
	if l.shape.Secondary {
		key = "KEY xid"
	}
	return fmt.Sprintf("(id %s NOT NULL%s, k %s DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, "+
		"pad CHAR(60) DEFAULT '' NOT NULL, %s (id))", integer, increment, integer, key)
}

func (l oltpLoad) options() string {
	var options []string
	if l.opts.Engine != "" {
		options = append(options, "ENGINE = "+l.opts.Engine)
	}
	if l.shape.Unsigned && l.shape.Layout != oltpBulk {
		options = append(options, "MAX_ROWS = "+strconv.Itoa(oltpMaxRows))
	}
	return strings.TrimSpace(strings.Join(options, " ") + " " + l.shape.Options)
}

// place is where a part lies: parts that follow each other are of different tables, so
// that loaders do not get in each other's way.
func (l oltpLoad) place(part int64) (table int, first, last int64) {
	n := int64(l.shape.Tables)
	first = part/n*oltpPartRows + 1
	return int(part % n), first, min(first+oltpPartRows-1, l.shape.Rows)
}

func (l oltpLoad) load(s Session, part int64) error {
	table, first, last := l.place(part)
	const ofParts = 1 << 63 // apart from the seeds of clients
	rng := rand.New(rand.NewPCG(l.seed, ofParts|uint64(part)))
	ks := l.distribution.Ints(rng, 1, l.shape.Range)
	head := "INSERT INTO " + l.table(table) + " (id, k, c, pad) VALUES"
	text := make([]byte, 0, oltpPacket)
	for id := first; id <= last; id++ {
		if len(text) == 0 {
			text = append(text, head...)
		} else {
			text = append(text, ',')
		}
		text = l.appendRow(text, rng, ks, id)
		if id < last && len(text)+oltpLongestRow <= oltpPacket {
			continue
		}
		if _, err := s.Exec(textOf(text)); err != nil {
			return err
		}
		text = text[:0]
	}
	return nil
}

func (l oltpLoad) appendRow(dst []byte, rng *rand.Rand, ks *random.Ints, id int64) []byte {
	dst = append(dst, '(')
	dst = strconv.AppendInt(dst, id, 10)
	dst = append(dst, ',')
	if l.shape.Layout == oltpFixed {
		dst = strconv.AppendInt(dst, id, 10)
		return append(dst, ",'"+oltpFixedC+"','"+oltpFixedPad+"')"...)
	}
	dst = strconv.AppendInt(dst, ks.Next(), 10)
	dst = append(dst, ",'"...)
	dst = random.AppendDigits(dst, rng, oltpGroups)
	dst = append(dst, "','"...)
	dst = random.AppendDigits(dst, rng, oltpPadGroups)
	return append(dst, "')"...)
}

func (l oltpLoad) remove(s Session, part int64) error {
	table, first, last := l.place(part)
	_, err := s.Exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", l.table(table), first, last))
	return err
}

// createIndex is content with an index that is there: the load may have been cut off
// after it was made and before that was noted.
func (l oltpLoad) createIndex(s Session, part int64) error {
	table := l.table(int(part))
	name := "k_" + strings.TrimPrefix(table, oltpTable)
	if l.shape.Layout == oltpFixed {
		name = "k"
	}
	_, err := s.Exec("CREATE INDEX " + name + " ON " + table + "(k)")
	if errorNumber(err) == erDupKeyName {
		return nil
	}
	return err
}

// check holds the number of rows and their bounds against the shape. Rows that a run
// has changed are no damage.
func (l oltpLoad) check(env *Env) (damage string, err error) {
	for i := range l.shape.Tables {
		var rows, low, high int64
		name := l.table(i)
		err := env.Session.Query("SELECT COUNT(*), MIN(id), MAX(id) FROM "+name, func(row Row) error {
			rows, _ = row.Int(0)
			low, _ = row.Int(1) // 0 where there is no row
			high, _ = row.Int(2)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("count the rows of %s: %w", name, err)
		}
		if rows != l.shape.Rows || high != l.shape.Rows || low != min(1, l.shape.Rows) {
			return fmt.Sprintf("the table %s has %d rows with the ids %d to %d, not 1 to %d", name, rows, low, high, l.shape.Rows), nil
		}
	}
	return "", nil
}
