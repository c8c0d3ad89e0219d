package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unsafe"

	"dbbench.dev/operator/runner/contract"
)

// The kinds of event of slap.
const (
	slapInsert = iota
	slapSelect
	slapUpdate
)

const (
	slapTable       = "t1"
	slapTextLength  = 126
	slapIntLimit    = 1 << 31 // as of random(3)
	slapEngineField = "spec.workload.slap.engine"
)

// slapAlphabet is what mysqlslap draws its texts from; it knows no U and no V.
const slapAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTWXYZabcdefghijklmnopqrstuvwxyz"

// slapBlackholeKey stands for all keys of a table that keeps no rows.
const slapBlackholeKey = "796c4422-1d94-102a-9d6d-00e0812d"

// slap is the load that mysqlslap generates (--auto-generate-sql): a table t1 filled
// by single INSERTs, and a short list of statements, their literals drawn once, that
// every client walks over and over. An event is one statement of the list, together
// with the reconnect before it and the COMMIT after it where they are due.
type slap struct {
	opts    contract.Slap
	seed    uint64
	inserts []string        // of the pre-load, cycled
	list    []slapStatement // of a pass
	keys    []string        // of the rows that the pre-load made
}

type slapStatement struct {
	operation int
	text      string
	keyed     bool // a key and a quote are to be added
}

func newSlap(opts contract.Slap) *slap {
	s := &slap{opts: opts, seed: rand.Uint64()}
	if opts.Seed != nil {
		s.seed = uint64(*opts.Seed)
	}
	rng := rand.New(rand.NewPCG(s.seed, 0))
	for range opts.UniqueWrites {
		s.inserts = append(s.inserts, s.insertText(rng))
	}
	for i := range s.passLength() {
		s.list = append(s.list, s.statement(rng, i))
	}
	return s
}

// passLength is the number of statements in the list. mysqlslap's list is one longer
// than it was asked for.
func (s *slap) passLength() int {
	if s.opts.ExactCounts {
		return int(s.opts.UniqueQueries) + 1
	}
	return int(s.opts.UniqueQueries)
}

// preloadRows is the number of rows that are loaded. mysqlslap counts its CREATE
// TABLE as one of them.
func (s *slap) preloadRows() int64 {
	if s.opts.ExactCounts {
		return max(s.opts.PreloadRows-1, 0)
	}
	return s.opts.PreloadRows
}

func (s *slap) hasKey() bool { return s.opts.AutoIncrement || s.opts.GUIDPrimary }

func (s *slap) statement(rng *rand.Rand, i int) slapStatement {
	switch s.opts.LoadType {
	case contract.SlapRead:
		return s.selectStatement(false)
	case contract.SlapKey:
		return s.selectStatement(true)
	case contract.SlapUpdate:
		return s.updateStatement(rng)
	case contract.SlapMixed:
		if i%2 == 1 {
			return s.selectStatement(s.hasKey())
		}
	}
	return slapStatement{operation: slapInsert, text: s.insertText(rng)}
}

func (s *slap) insertText(rng *rand.Rand) string {
	var values []string
	switch {
	case s.opts.AutoIncrement:
		values = append(values, "NULL")
	case s.opts.GUIDPrimary:
		values = append(values, "uuid()")
	}
	for range s.opts.SecondaryIndexes {
		values = append(values, "uuid()")
	}
	for range s.opts.IntColumns {
		values = append(values, slapInt(rng))
	}
	for range s.opts.CharColumns {
		values = append(values, "'"+slapText(rng)+"'")
	}
	return "INSERT INTO t1 VALUES (" + strings.Join(values, ",") + ")"
}

func (s *slap) selectStatement(byKey bool) slapStatement {
	text := "SELECT " + strings.Join(s.columns(), ",") + " FROM t1"
	return withKey(slapStatement{operation: slapSelect, text: text}, byKey)
}

func (s *slap) updateStatement(rng *rand.Rand) slapStatement {
	var sets []string
	for i, column := range s.columns() {
		value := slapInt(rng)
		if i >= int(s.opts.IntColumns) {
			value = "'" + slapText(rng) + "'"
		}
		sets = append(sets, column+" = "+value)
	}
	text := "UPDATE t1 SET " + strings.Join(sets, ",")
	return withKey(slapStatement{operation: slapUpdate, text: text}, s.hasKey())
}

func withKey(st slapStatement, byKey bool) slapStatement {
	if byKey {
		st.text += " WHERE id =  '" // two blanks, and quotes also for integers
		st.keyed = true
	}
	return st
}

// columns are the names of the columns with generated values.
func (s *slap) columns() []string {
	var names []string
	for i := range s.opts.IntColumns {
		names = append(names, "intcol"+strconv.Itoa(int(i)+1))
	}
	for i := range s.opts.CharColumns {
		names = append(names, "charcol"+strconv.Itoa(int(i)+1))
	}
	return names
}

func slapInt(rng *rand.Rand) string { return strconv.FormatInt(rng.Int64N(slapIntLimit), 10) }

func slapText(rng *rand.Rand) string {
	b := make([]byte, slapTextLength)
	for i := range b {
		b[i] = slapAlphabet[rng.IntN(len(slapAlphabet))]
	}
	return string(b)
}

// definition is the table's list of columns and indexes.
func (s *slap) definition() string {
	var parts []string
	switch {
	case s.opts.AutoIncrement:
		parts = append(parts, "id serial")
	case s.opts.GUIDPrimary:
		parts = append(parts, "id varchar(36) primary key")
	}
	for i := range s.opts.SecondaryIndexes {
		parts = append(parts, fmt.Sprintf("id%d varchar(36) unique key", i))
	}
	for i, column := range s.columns() {
		isInt := i < int(s.opts.IntColumns)
		typ, indexed := "VARCHAR(128)", s.opts.CharColumnsIndexed
		if isInt {
			typ, indexed = "INT(32)", s.opts.IntColumnsIndexed
		}
		parts = append(parts, column+" "+typ)
		if indexed {
			parts = append(parts, "INDEX("+column+")")
		}
	}
	return "(" + strings.Join(parts, ",") + ")"
}

func (s *slap) Operations() []string { return []string{"insert", "select", "update"} }

func (s *slap) Requirements() Requirements {
	r := Requirements{
		Tables: []string{slapTable}, NoPrimaryKey: !s.opts.GUIDPrimary, Sessions: 1,
		ConnectInRun: s.opts.TimingIncludesConnect,
	}
	if s.opts.Engine != "" {
		r.Engines, r.EngineField = []string{s.opts.Engine}, slapEngineField
	}
	used := [3]bool{slapInsert: s.preloadRows() > 0, slapSelect: s.hasKey()}
	for _, st := range s.list {
		used[st.operation] = true
		r.LargestPacket = max(r.LargestPacket, len(st.text)+len(slapBlackholeKey)+1)
	}
	for _, text := range s.inserts {
		r.LargestPacket = max(r.LargestPacket, len(text))
	}
	for operation, statement := range [3]string{"INSERT", "SELECT", "UPDATE"} {
		if used[operation] {
			r.Privileges = append(r.Privileges, statement)
		}
	}
	return r
}

// Load ends each client after one pass where l has no stop rule. With exact counts
// the events are dealt to the clients as mysqlslap deals its --number-of-queries: the
// remainder is dropped, and where there is less than one for each client, every client
// does a whole pass.
func (s *slap) Load(l contract.Load) contract.Load {
	if s.opts.ExactCounts && l.EventsPerClient == 0 && l.Events > 0 {
		l.EventsPerClient = l.Events / int64(l.Clients)
		l.Events = 0
		if l.EventsPerClient == 0 {
			l.EventsPerClient = int64(len(s.list))
		}
	}
	if l.EventsPerClient == 0 && l.Events == 0 && l.Duration == 0 {
		l.EventsPerClient = int64(len(s.list))
	}
	return l
}

func (s *slap) Prepare(env *Env) error {
	if env.Mode != contract.PreparePerRun {
		return &contract.Failure{Class: contract.ClassInvalidRunSpec,
			Message: fmt.Sprintf("prepare: %s is not possible with the workload slap, which loads its rows for each run", env.Mode),
			Hint:    "set spec.prepare to PerRun, or leave it out"}
	}
	if err := s.createTable(env); err != nil {
		return err
	}
	for i := range s.preloadRows() {
		select {
		case <-env.Stopped:
			return errors.New("stopped while rows were loaded")
		default:
		}
		if _, err := env.Session.Exec(s.inserts[i%int64(len(s.inserts))]); err != nil {
			return fmt.Errorf("load rows: %w", err)
		}
	}
	return s.Follow(env)
}

// Follow is part of Follower.
func (s *slap) Follow(env *Env) error {
	if !s.hasKey() {
		return nil
	}
	return s.readKeys(env.Session)
}

// createTable names the engine as the tool of the server's flavour does.
func (s *slap) createTable(env *Env) error {
	options := s.opts.EngineOption
	if s.opts.Engine != "" {
		if env.MariaDB {
			options = strings.TrimSpace("Engine = " + s.opts.Engine + " " + options)
		} else if _, err := env.Session.Exec("set default_storage_engine=`" + s.opts.Engine + "`"); err != nil {
			return fmt.Errorf("set the engine: %w", err)
		}
	}
	return env.Tables.Create(slapTable, s.definition(), options, s.opts.Engine)
}

// readKeys reads the keys that the run looks up. Rows that the run inserts are never
// among them.
func (s *slap) readKeys(session Session) error {
	s.keys = s.keys[:0]
	if strings.EqualFold(s.opts.Engine, "blackhole") {
		s.keys = append(s.keys, slapBlackholeKey)
		return nil
	}
	err := session.Query("SELECT id from t1", func(row Row) error {
		s.keys = append(s.keys, string(row.Append(nil, 0)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	if len(s.keys) == 0 && s.needsKeys() {
		return &contract.Failure{Class: contract.ClassInvalidRunSpec,
			Message: fmt.Sprintf("spec.workload.slap.preloadRows: %d leaves no row whose key could be looked up", s.opts.PreloadRows),
			Hint:    "set it to 2 or more (with exactCounts one row less is loaded)"}
	}
	return nil
}

func (s *slap) needsKeys() bool {
	for _, st := range s.list {
		if st.keyed {
			return true
		}
	}
	return false
}

func (s *slap) NewClient(i, _ int) Client {
	return &slapClient{slap: s, rng: rand.New(rand.NewPCG(s.seed, uint64(i)+1))}
}

// Verify has nothing to check that the tool would, and a SELECT would show in the
// server's counters.
func (s *slap) Verify(*Env) (map[string]string, error) { return nil, nil }

// OnError ends the run at any error, as the tool does (which then reports success).
func (s *slap) OnError(error) Action { return Fail }

type slapClient struct {
	*slap
	rng         *rand.Rand
	session     Session
	position    int // in the list
	uncommitted int64
	text        []byte
}

func (c *slapClient) Open(sessions []Session) error {
	c.session = sessions[0]
	if c.opts.CommitEvery > 0 {
		_, err := c.session.Exec("SET AUTOCOMMIT=0")
		return err
	}
	return nil
}

func (c *slapClient) Event() (int, error) {
	st := &c.list[c.position]
	// As in the tool a reconnect is due at the start of each pass, the first one
	// included, and autocommit is back on after it.
	if c.opts.DetachEvery > 0 && int64(c.position)%c.opts.DetachEvery == 0 {
		if err := c.session.Reconnect(); err != nil {
			return st.operation, err
		}
	}
	if c.position++; c.position == len(c.list) {
		c.position = 0
	}
	if err := c.execute(st); err != nil {
		return st.operation, err
	}
	return st.operation, c.commitIfDue()
}

func (c *slapClient) execute(st *slapStatement) error {
	text := st.text
	if st.keyed {
		text = c.bind(text)
	}
	if st.operation == slapSelect {
		return c.session.Query(text, nil)
	}
	_, err := c.session.Exec(text)
	return err
}

// bind adds a key. The text lives in the client's buffer until the next call, which
// is as long as the session needs it.
func (c *slapClient) bind(text string) string {
	key := c.keys[c.rng.IntN(len(c.keys))]
	c.text = append(append(append(c.text[:0], text...), key...), '\'')
	return unsafe.String(unsafe.SliceData(c.text), len(c.text))
}

func (c *slapClient) commitIfDue() error {
	if c.opts.CommitEvery == 0 {
		return nil
	}
	if c.uncommitted++; c.uncommitted < c.opts.CommitEvery {
		return nil
	}
	c.uncommitted = 0
	_, err := c.session.Exec("COMMIT")
	return err
}

// Close commits once more, even where nothing is left to commit: so does the tool.
func (c *slapClient) Close() error {
	if c.opts.CommitEvery == 0 {
		return nil
	}
	_, err := c.session.Exec("COMMIT")
	return err
}
