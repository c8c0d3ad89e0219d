package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload/random"
	"dbbench.dev/operator/runner/workload/sqltext"
)

// erUnsupportedPrepared says that a statement cannot be prepared on the server.
const erUnsupportedPrepared = 1295

// sqlZipfianExponent is that of YCSB.
const sqlZipfianExponent = 0.99

// userSQL is the user's own statements. An event is one of them, or a transaction of
// several. Statements are prepared on the server; one that it cannot prepare, and that
// has no parameters, is sent as text.
type userSQL struct {
	opts       contract.SQL
	file       string // the text of StatementsFile
	operations []string
	events     []sqlEvent
	// weights are added up, for drawing; nil where the order is Sequential.
	weights []int64
	seed    uint64
	// err is what is wrong with the texts, as they read in the server's mode or, before
	// that is known, in the default one.
	err error
}

// sqlEvent is what is done in one event.
type sqlEvent struct {
	operation   int
	statements  []sqlStatement
	transaction bool
	parameters  []int // those that are drawn for it, by their index
}

// sqlStatement is a statement with "?" for its parameters.
type sqlStatement struct {
	text       string
	parameters []int // by their index, in the order of their places
	rows       bool  // it may give some
}

func newSQL(opts contract.SQL) *userSQL {
	s := &userSQL{opts: opts, seed: rand.Uint64()}
	if opts.Seed != nil {
		s.seed = uint64(*opts.Seed)
	}
	if opts.StatementsFile != "" {
		b, err := os.ReadFile(opts.StatementsFile)
		if err != nil {
			s.err = invalidSQL("statementsFile", fmt.Errorf("cannot be read: %w", err))
			return s
		}
		s.file = string(b)
	}
	s.err = s.parse(sqltext.Mode{})
	return s
}

func invalidSQL(field string, err error) error {
	return &contract.Failure{Class: contract.ClassInvalidRunSpec, Message: fmt.Sprintf("spec.workload.sql.%s: %v", field, err),
		Hint: "correct the text; statements are separated by ; or by what a DELIMITER command sets"}
}

// parse makes the events out of the texts.
func (s *userSQL) parse(mode sqltext.Mode) error {
	s.operations, s.events, s.weights = nil, nil, nil
	if s.opts.StatementsFile != "" {
		if err := s.parseFile(mode); err != nil {
			return invalidSQL("statementsFile", err)
		}
	}
	for i, st := range s.opts.Statements {
		if err := s.parseStatement(st, mode); err != nil {
			return invalidSQL(fmt.Sprintf("statements[%d] (%s)", i, st.Name), err)
		}
	}
	return nil
}

func (s *userSQL) parseStatement(st contract.SQLStatement, mode sqltext.Mode) error {
	list, err := sqltext.Split(st.SQL, mode)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return errors.New("there is no statement in it")
	case len(list) > 1 && !st.Transaction:
		return fmt.Errorf("there are %d statements in it: set transaction: true, or make an entry of each", len(list))
	}
	return s.add(st.Name, list, st.Transaction, int64(st.Weight), mode)
}

// parseFile takes each statement for an event, and what stands between BEGIN and COMMIT
// for one. They are counted by their kind.
func (s *userSQL) parseFile(mode sqltext.Mode) error {
	list, err := sqltext.Split(s.file, mode)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("there is no statement in it")
	}
	for len(list) > 0 {
		n, transaction := 1, beginsTransaction(list[0].Text, mode)
		if transaction {
			n = slices.IndexFunc(list, func(st sqltext.Statement) bool { return sqltext.Keyword(st.Text, mode) == "COMMIT" })
			if n < 2 {
				return fmt.Errorf("line %d: a transaction that has no statement or no COMMIT", list[0].Line)
			}
			err = s.add("transaction", list[1:n], true, 1, mode)
			n++
		} else {
			err = s.add(strings.ToLower(sqltext.Keyword(list[0].Text, mode)), list[:1], false, 1, mode)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", list[0].Line, err)
		}
		list = list[n:]
	}
	return nil
}

func beginsTransaction(text string, mode sqltext.Mode) bool {
	return sqltext.Keyword(text, mode) == "BEGIN" || strings.EqualFold(strings.Join(strings.Fields(text), " "), "START TRANSACTION")
}

// add adds an event.
func (s *userSQL) add(operation string, list []sqltext.Statement, transaction bool, weight int64, mode sqltext.Mode) error {
	e := sqlEvent{operation: slices.Index(s.operations, operation), transaction: transaction}
	if e.operation < 0 {
		e.operation = len(s.operations)
		s.operations = append(s.operations, operation)
	}
	for _, st := range list {
		text, names, err := sqltext.Parameters(st.Text, mode)
		if err != nil {
			return err
		}
		parsed := sqlStatement{text: text, rows: sqltext.MayReturnRows(text, mode)}
		for _, name := range names {
			p := slices.IndexFunc(s.opts.Parameters, func(p contract.SQLParameter) bool { return p.Name == name })
			if p < 0 {
				return fmt.Errorf("the parameter :%s is not among spec.workload.sql.parameters", name)
			}
			parsed.parameters = append(parsed.parameters, p)
			if !slices.Contains(e.parameters, p) {
				e.parameters = append(e.parameters, p)
			}
		}
		e.statements = append(e.statements, parsed)
	}
	s.events = append(s.events, e)
	if s.opts.Order == contract.OrderWeighted {
		if n := len(s.weights); n > 0 {
			weight += s.weights[n-1]
		}
		s.weights = append(s.weights, weight)
	}
	return nil
}

func (s *userSQL) Operations() []string { return s.operations }

func (s *userSQL) Requirements() Requirements {
	r := Requirements{Sessions: 1}
	longest := 0 // parameter
	for _, p := range s.opts.Parameters {
		if p.Type == contract.ParameterString {
			longest = max(longest, int(p.Max))
		}
		for _, v := range p.Values {
			longest = max(longest, len(v))
		}
	}
	for _, e := range s.events {
		r.Statements += len(e.statements)
		for _, st := range e.statements {
			r.LargestPacket = max(r.LargestPacket, len(st.text), len(st.parameters)*longest)
		}
	}
	return r
}

// sqlDuration is how long a load goes on that has no end.
const sqlDuration = 10 * time.Second

// Load ends each client after one pass of statements in Sequential order where l has no
// stop rule. Draws have no end of their own.
func (s *userSQL) Load(l contract.Load) contract.Load {
	switch {
	case l.EventsPerClient != 0 || l.Events != 0 || l.Duration != 0:
	case s.opts.Order == contract.OrderSequential:
		l.EventsPerClient = int64(max(1, len(s.events)))
	default:
		l.Duration = contract.Duration(sqlDuration)
	}
	return l
}

// OnError repeats an event after the errors that the user has named.
func (s *userSQL) OnError(err error) Action {
	if n := errorNumber(err); n != 0 && slices.Contains(s.opts.RetryErrors, int32(n)) {
		return Retry
	}
	return Fail
}

// Prepare runs setup and pre. The tables that they make become the benchmark's; what
// was left of an earlier setup is dropped before.
func (s *userSQL) Prepare(env *Env) error {
	mode, err := s.read(env)
	if err != nil {
		return err
	}
	data := &Dataset{
		Workload: "sql", Shape: s.opts.Setup,
		Create: func(env *Env) error { return s.setup(env, mode) },
		Check:  func(*Env) (string, error) { return "", nil }, // what it should look like, the user knows
	}
	if err := data.Prepare(env); err != nil {
		return err
	}
	return env.Adoption.Adopt(func() error { return runText(env, "pre", s.opts.Pre, mode) })
}

// Follow is part of Follower: what the statements say depends on the server's mode.
func (s *userSQL) Follow(env *Env) error {
	_, err := s.read(env)
	return err
}

// read reads the statements in the server's mode.
func (s *userSQL) read(env *Env) (sqltext.Mode, error) {
	mode, err := readMode(env.Session)
	if err != nil {
		return mode, err
	}
	if s.opts.StatementsFile == "" || s.file != "" {
		s.err = s.parse(mode)
	}
	return mode, s.err
}

func (s *userSQL) setup(env *Env, mode sqltext.Mode) error {
	if err := env.Adoption.Clear(); err != nil {
		return err
	}
	return env.Adoption.Adopt(func() error { return runText(env, "setup", s.opts.Setup, mode) })
}

// Verify runs post.
func (s *userSQL) Verify(env *Env) (map[string]string, error) {
	mode, err := readMode(env.Session)
	if err != nil {
		return nil, err
	}
	return nil, env.Adoption.Adopt(func() error { return runText(env, "post", s.opts.Post, mode) })
}

// Cleanup is part of Cleaner.
func (s *userSQL) Cleanup(env *Env) error {
	mode, err := readMode(env.Session)
	if err != nil {
		return err
	}
	return runText(env, "cleanup", s.opts.Cleanup, mode)
}

func readMode(session Session) (mode sqltext.Mode, err error) {
	err = session.Query("SELECT @@SESSION.sql_mode", func(row Row) error {
		mode = sqltext.ParseMode(string(row.Append(nil, 0)))
		return nil
	})
	if err != nil {
		return mode, fmt.Errorf("read sql_mode: %w", err)
	}
	return mode, nil
}

// runText runs the statements of a text on a connection of their own: what they set
// there, or leave open, ends with it.
func runText(env *Env, field, text string, mode sqltext.Mode) error {
	list, err := sqltext.Split(text, mode)
	if err != nil {
		return invalidSQL(field, err)
	}
	if len(list) == 0 {
		return nil
	}
	session, err := env.Connect()
	if err != nil {
		return fmt.Errorf("connect for spec.workload.sql.%s: %w", field, err)
	}
	defer session.Close()
	for _, st := range list {
		select {
		case <-env.Stopped:
			return errStopped
		default:
		}
		if _, err := session.Exec(st.Text); err != nil {
			return fmt.Errorf("spec.workload.sql.%s, line %d: %w", field, st.Line, err)
		}
	}
	return nil
}

// generator makes the values of a parameter for one client. It allocates nothing per
// value.
type generator struct {
	rng  *rand.Rand
	next func(*generator) Arg

	ints      *random.Ints // also the lengths of texts
	values    []Arg        // of a list
	text      []byte       // is used again for each
	low, span int64        // of a sequence
	at, step  int64
}

// sqlLetters are those of random texts.
const sqlLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newGenerator makes that of client i of n.
func newGenerator(p contract.SQLParameter, rng *rand.Rand, i, n int) *generator {
	g := &generator{rng: rng}
	switch p.Type {
	case contract.ParameterSequence:
		g.next = (*generator).sequence
		g.low, g.span = p.Min, p.Max-p.Min+1
		g.at, g.step = int64(i)%g.span, int64(n)%g.span
	case contract.ParameterZipfian:
		g.next = (*generator).integer
		g.ints = random.Distribution{Kind: random.Zipfian, Exponent: sqlZipfianExponent}.Ints(rng, p.Min, p.Max)
	case contract.ParameterString:
		g.next = (*generator).letters
		g.text = make([]byte, p.Max)
		g.ints = random.Distribution{}.Ints(rng, p.Min, p.Max)
	case contract.ParameterList:
		g.next = (*generator).element
		for _, v := range p.Values {
			g.values = append(g.values, Text(v))
		}
	default:
		g.next = (*generator).integer
		g.ints = random.Distribution{}.Ints(rng, p.Min, p.Max)
	}
	return g
}

func (g *generator) integer() Arg { return Int(g.ints.Next()) }

// sequence counts up. The clients share one sequence: each takes every n-th number, and
// begins again at its end.
func (g *generator) sequence() Arg {
	v := g.low + g.at
	g.at = (g.at + g.step) % g.span
	return Int(v)
}

func (g *generator) element() Arg { return g.values[g.rng.IntN(len(g.values))] }

func (g *generator) letters() Arg {
	text := g.text[:g.ints.Next()]
	for i := range text {
		text[i] = sqlLetters[g.rng.IntN(len(sqlLetters))]
	}
	return Bytes(text)
}

// sqlClient is one client.
type sqlClient struct {
	*userSQL
	rng        *rand.Rand
	generators []*generator
	values     []Arg // of the event, by the index of the parameter
	args       []Arg
	session    Session
	handles    [][]sqlHandle // by event and statement
	event      int           // the current one
	repeat     bool          // it is done again, with the same values
}

// sqlHandle is a statement as a session has it.
type sqlHandle struct {
	handle   Handle
	prepared bool // else it is sent as text
}

func (s *userSQL) NewClient(i, n int) Client {
	c := &sqlClient{userSQL: s, rng: rand.New(rand.NewPCG(s.seed, uint64(i))), event: -1}
	for _, p := range s.opts.Parameters {
		c.generators = append(c.generators, newGenerator(p, c.rng, i, n))
	}
	c.values = make([]Arg, len(c.generators))
	return c
}

func (c *sqlClient) Open(sessions []Session) error {
	c.session = sessions[0]
	longest := 0
	c.handles = make([][]sqlHandle, len(c.events))
	for i, e := range c.events {
		c.handles[i] = make([]sqlHandle, len(e.statements))
		for j, st := range e.statements {
			handle, err := c.session.Prepare(st.text)
			if err != nil && (errorNumber(err) != erUnsupportedPrepared || len(st.parameters) > 0) {
				return fmt.Errorf("prepare a statement of %s: %w", c.operations[e.operation], err)
			}
			c.handles[i][j] = sqlHandle{handle, err == nil}
			longest = max(longest, len(st.parameters))
		}
	}
	c.args = make([]Arg, 0, longest)
	return nil
}

func (c *sqlClient) Event() (int, error) {
	if !c.repeat {
		c.choose()
	}
	e := &c.events[c.event]
	err := c.execute(e)
	c.repeat = err != nil && c.OnError(err) == Retry
	return e.operation, err
}

// choose takes the next event and draws its values.
func (c *sqlClient) choose() {
	switch {
	case c.weights != nil:
		draw := c.rng.Int64N(c.weights[len(c.weights)-1])
		c.event, _ = slices.BinarySearch(c.weights, draw+1)
	case c.event == len(c.events)-1:
		c.event = 0
	default:
		c.event++
	}
	for _, p := range c.events[c.event].parameters {
		c.values[p] = c.generators[p].next(c.generators[p])
	}
}

func (c *sqlClient) execute(e *sqlEvent) error {
	if !e.transaction {
		return c.statement(&e.statements[0], c.handles[c.event][0])
	}
	if _, err := c.session.Exec("BEGIN"); err != nil {
		return err
	}
	for i := range e.statements {
		if err := c.statement(&e.statements[i], c.handles[c.event][i]); err != nil {
			return c.rollback(err)
		}
	}
	if _, err := c.session.Exec("COMMIT"); err != nil {
		return c.rollback(err)
	}
	return nil
}

// rollback ends a transaction after an error of the server.
func (c *sqlClient) rollback(err error) error {
	if errorNumber(err) == 0 {
		return err // the connection is lost, and the transaction with it
	}
	if _, failed := c.session.Exec("ROLLBACK"); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

func (c *sqlClient) statement(st *sqlStatement, h sqlHandle) error {
	c.args = c.args[:0]
	for _, p := range st.parameters {
		c.args = append(c.args, c.values[p])
	}
	var err error
	switch {
	case h.prepared && st.rows:
		err = c.session.QueryPrepared(h.handle, c.args, dropRow)
	case h.prepared:
		_, err = c.session.ExecPrepared(h.handle, c.args)
	case st.rows:
		err = c.session.Query(st.text, nil)
	default:
		_, err = c.session.Exec(st.text)
	}
	return err
}

func (c *sqlClient) Close() error { return nil }
