package workload

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"dbbench.dev/operator/runner/contract"
)

func sqlOptions() contract.SQL {
	seed := int64(1)
	return contract.SQL{
		Order: contract.OrderSequential, Seed: &seed,
		Statements: []contract.SQLStatement{
			{Name: "insert", SQL: "INSERT INTO t VALUES (:n, :n)", Weight: 1},
			{Name: "move", Transaction: true, Weight: 3, SQL: "SELECT a FROM t WHERE id = :n FOR UPDATE; UPDATE t SET a = 1 WHERE id = :n;"},
			{Name: "never", SQL: "DELETE FROM t", Weight: 0},
		},
		Parameters:  []contract.SQLParameter{{Name: "n", Type: contract.ParameterSequence, Min: 1, Max: 5}},
		RetryErrors: []int32{1213},
	}
}

// sqlPass is what a client says in some events.
func sqlPass(t *testing.T, opts contract.SQL, s *tape, events int) []string {
	t.Helper()
	w := newSQL(opts)
	if w.err != nil {
		t.Fatal(w.err)
	}
	c := w.NewClient(0, 2)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	s.said = nil
	for range events {
		if _, err := c.Event(); err != nil && w.OnError(err) != Retry {
			t.Fatal(err)
		}
	}
	return s.said
}

func TestSQLEvents(t *testing.T) {
	// The sequence is shared by two clients: this one has every second number. A value
	// holds for an event.
	want := []string{
		"-- execute: INSERT INTO t VALUES (1, 1)",
		"BEGIN", "-- execute: SELECT a FROM t WHERE id = 3 FOR UPDATE", "-- execute: UPDATE t SET a = 1 WHERE id = 3", "COMMIT",
		"-- execute: DELETE FROM t",
		"-- execute: INSERT INTO t VALUES (5, 5)",
		"BEGIN", "-- execute: SELECT a FROM t WHERE id = 2 FOR UPDATE", "-- execute: UPDATE t SET a = 1 WHERE id = 2", "COMMIT",
	}
	if d := cmp.Diff(want, sqlPass(t, sqlOptions(), &tape{}, 5)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSQLRepeatsTheSameEvent(t *testing.T) {
	failures := 2
	s := &tape{answer: func(text string) error {
		if strings.HasPrefix(text, "UPDATE t SET a = 1 WHERE id = 3") && failures > 0 {
			failures--
			return &mysql.MySQLError{Number: 1213}
		}
		return nil
	}}
	want := []string{"-- execute: INSERT INTO t VALUES (1, 1)"}
	for _, end := range []string{"ROLLBACK", "ROLLBACK", "COMMIT"} {
		want = append(want, "BEGIN", "-- execute: SELECT a FROM t WHERE id = 3 FOR UPDATE", "-- execute: UPDATE t SET a = 1 WHERE id = 3", end)
	}
	if d := cmp.Diff(want, sqlPass(t, sqlOptions(), s, 4)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestSQLSendsTextWhatCannotBePrepared: but for statements with parameters, which cannot
// be sent so.
func TestSQLSendsTextWhatCannotBePrepared(t *testing.T) {
	refuse := func(text string) error {
		if strings.HasPrefix(text, "LOCK") || strings.HasPrefix(text, "XA") {
			return &mysql.MySQLError{Number: erUnsupportedPrepared}
		}
		return nil
	}
	opts := sqlOptions()
	opts.Statements = []contract.SQLStatement{{Name: "lock", SQL: "LOCK TABLES t READ", Weight: 1}}
	s := &tape{answer: refuse}
	c := newSQL(opts).NewClient(0, 1)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	s.answer = nil
	if _, err := c.Event(); err != nil || s.said[len(s.said)-1] != "LOCK TABLES t READ" {
		t.Errorf("said %q, %v", s.said, err)
	}
	opts.Statements[0].SQL = "XA START :n"
	s = &tape{answer: refuse}
	if err := newSQL(opts).NewClient(0, 1).Open([]Session{s}); errorNumber(err) != erUnsupportedPrepared {
		t.Errorf("a statement with parameters: %v", err)
	}
}

func TestSQLWeights(t *testing.T) {
	opts := sqlOptions()
	opts.Order = contract.OrderWeighted
	w := newSQL(opts)
	c := w.NewClient(0, 1).(*sqlClient)
	var seen [3]int
	for range 40000 {
		c.choose()
		seen[c.event]++
	}
	if seen[2] != 0 || seen[0] < 9500 || seen[0] > 10500 {
		t.Errorf("drawn %v of 40000, weights are 1, 3 and 0", seen)
	}
}

func TestSQLGenerators(t *testing.T) {
	draw := func(p contract.SQLParameter, i, n, count int) []Arg {
		g := newGenerator(p, rand.New(rand.NewPCG(1, uint64(i))), i, n)
		var out []Arg
		for range count {
			a := g.next(g)
			a.bytes = slices.Clone(a.bytes)
			out = append(out, a)
		}
		return out
	}
	// All clients together have each number of a sequence once.
	var all []int64
	for i := range 4 {
		for _, a := range draw(contract.SQLParameter{Type: contract.ParameterSequence, Min: -3, Max: 8}, i, 4, 3) {
			all = append(all, a.num)
		}
	}
	slices.Sort(all)
	if !slices.Equal(all, []int64{-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("sequence of four clients: %v", all)
	}
	low := 0
	for _, kind := range []string{contract.ParameterUniform, contract.ParameterZipfian} {
		for _, a := range draw(contract.SQLParameter{Type: kind, Min: 5, Max: 104}, 0, 1, 10000) {
			if a.num < 5 || a.num > 104 {
				t.Fatalf("%s: %d", kind, a.num)
			}
			if kind == contract.ParameterZipfian && a.num == 5 {
				low++
			}
		}
	}
	if low < 1500 || low > 2400 { // 1 / sum of r^-0.99 up to 100 is 0.190
		t.Errorf("the first of 100 came %d times of 10000", low)
	}
	lengths := map[int]bool{}
	for _, a := range draw(contract.SQLParameter{Type: contract.ParameterString, Min: 0, Max: 3}, 0, 1, 1000) {
		lengths[len(a.bytes)] = true
		if a.bytes == nil || strings.Trim(string(a.bytes), sqlLetters) != "" {
			t.Errorf("text %q", a.bytes)
		}
	}
	if len(lengths) != 4 {
		t.Errorf("lengths %v, want 0 to 3", lengths)
	}
	for _, a := range draw(contract.SQLParameter{Type: contract.ParameterList, Values: []string{"a", "b"}}, 0, 1, 100) {
		if a.text != "a" && a.text != "b" {
			t.Errorf("element %q", a.text)
		}
	}
	// The same seed gives the same values.
	p := contract.SQLParameter{Type: contract.ParameterUniform, Min: 1, Max: 1 << 40}
	if !slices.EqualFunc(draw(p, 3, 4, 10), draw(p, 3, 4, 10), func(a, b Arg) bool { return a.num == b.num }) {
		t.Error("another pass gives other values")
	}
}

func TestSQLRequirementsAndLoad(t *testing.T) {
	opts := sqlOptions()
	opts.Parameters = append(opts.Parameters, contract.SQLParameter{Name: "s", Type: contract.ParameterString, Max: 1000})
	opts.Statements[0].SQL = "INSERT INTO t VALUES (:s, :s)"
	w := newSQL(opts)
	if r := w.Requirements(); r.Statements != 4 || r.Sessions != 1 || r.LargestPacket != 2000 {
		t.Errorf("%+v", r)
	}
	w.opts.Order = contract.OrderWeighted
	if l := w.Load(contract.Load{Clients: 1}); l.EventsPerClient != 0 || l.Duration != contract.Duration(10*time.Second) {
		t.Errorf("statements that are drawn have no end: %+v", l)
	}
	w.opts.Order = contract.OrderSequential
	if l := w.Load(contract.Load{Clients: 1}); l.EventsPerClient != 3 || l.Duration != 0 {
		t.Errorf("one pass: %+v", l)
	}
	if l := w.Load(contract.Load{Clients: 1, Events: 7}); l.EventsPerClient != 0 || l.Events != 7 {
		t.Errorf("%+v", l)
	}
	if w.OnError(errors.New("lost")) != Fail || w.OnError(&mysql.MySQLError{Number: 1205}) != Fail {
		t.Error("an error that is not named is tried again")
	}
}

func TestSQLEventAllocatesNothing(t *testing.T) {
	opts := sqlOptions()
	opts.Order = contract.OrderWeighted
	opts.Parameters = append(opts.Parameters,
		contract.SQLParameter{Name: "u", Type: contract.ParameterUniform, Min: 1, Max: 100},
		contract.SQLParameter{Name: "z", Type: contract.ParameterZipfian, Min: 1, Max: 100},
		contract.SQLParameter{Name: "s", Type: contract.ParameterString, Min: 1, Max: 100},
		contract.SQLParameter{Name: "l", Type: contract.ParameterList, Values: []string{"a", "b"}})
	opts.Statements[0].SQL = "INSERT INTO t VALUES (:n, :u, :z, :s, :l)"
	c, s := newSQL(opts).NewClient(0, 1), &tape{}
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	s.mute = true
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := c.Event(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func BenchmarkSQLChoose(b *testing.B) {
	opts := sqlOptions()
	opts.Order = contract.OrderWeighted
	opts.Parameters[0].Type = contract.ParameterZipfian
	c := newSQL(opts).NewClient(0, 1).(*sqlClient)
	for range b.N {
		c.choose()
	}
}
