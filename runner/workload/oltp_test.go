package workload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

// tape is a session that notes what is said to it, with the arguments of prepared
// statements put in, and a maker of tables.
type tape struct {
	said     []string
	prepared []string
	// answer may give an error to a text.
	answer func(text string) error
	// rows are those of queries with a receiver, by text.
	rows   map[string][]Row
	tables map[string]bool
	mute   bool
}

func (s *tape) say(prefix, text string) error {
	if s.mute {
		return nil
	}
	s.said = append(s.said, prefix+strings.Clone(text)) // the text lives until the call returns
	if s.answer != nil {
		return s.answer(text)
	}
	return nil
}

func (s *tape) Exec(q string) (Result, error) { return Result{}, s.say("", q) }
func (s *tape) Query(q string, row RowFunc) error {
	if err := s.say("", q); err != nil || row == nil {
		return err
	}
	for _, r := range s.rows[q] {
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}
func (s *tape) Reconnect() error { s.prepared = nil; return s.say("-- ", "reconnect") }
func (s *tape) Prepare(q string) (Handle, error) {
	s.prepared = append(s.prepared, q)
	return Handle(len(s.prepared) - 1), s.say("-- prepare: ", q)
}
func (s *tape) execute(h Handle, args []Arg) error {
	if s.mute {
		return nil
	}
	text := s.prepared[h]
	for _, a := range args {
		text = strings.Replace(text, "?", string(appendLiteral(nil, a)), 1)
	}
	return s.say("-- execute: ", text)
}
func (s *tape) ExecPrepared(h Handle, args []Arg) (Result, error) {
	return Result{}, s.execute(h, args)
}
func (s *tape) QueryPrepared(h Handle, args []Arg, _ RowFunc) error { return s.execute(h, args) }

func (s *tape) Create(name, definition, options, engine string) error {
	if s.tables == nil {
		s.tables = map[string]bool{}
	}
	s.tables[name] = true
	return s.say("", strings.TrimSpace("CREATE TABLE "+name+" "+definition+" "+options)+" -- engine "+engine)
}
func (s *tape) Owned(name string) (bool, error) { return s.tables[name], nil }

func oltpOptions(script string) contract.OLTP {
	seed := int64(1)
	return contract.OLTP{
		Script: script, Compat: contract.Sysbench10, Tables: 2, TableSize: 1000, Engine: "InnoDB", AutoIncrement: true, CreateSecondary: true,
		PointSelects: 10, RangeSelects: true, RangeSize: 100, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1, RandomPoints: 10, NumberOfRanges: 10, Delta: 5,
		IgnoreErrors: []int32{1213, 1020, 1205}, Loaders: 4, Seed: &seed,
	}
}

// TestOLTPTexts holds all that a script says against golden files; a reader can
// compare them with the general log of a server that sysbench has run on.
func TestOLTPTexts(t *testing.T) {
	old := func(o *contract.OLTP) { o.Compat = contract.Sysbench05 }
	both := func(changes ...func(*contract.OLTP)) func(*contract.OLTP) {
		return func(o *contract.OLTP) {
			for _, c := range changes {
				c(o)
			}
		}
	}
	for _, tt := range []struct {
		name, script string
		change       func(*contract.OLTP)
	}{
		{"point-select", contract.OLTPPointSelect, nil},
		{"read-only", contract.OLTPReadOnly, nil},
		{"read-only-points", contract.OLTPReadOnly, func(o *contract.OLTP) { o.RangeSelects = false }},
		{"read-write", contract.OLTPReadWrite, nil},
		{"read-write-counts", contract.OLTPReadWrite, func(o *contract.OLTP) {
			o.PointSelects, o.SimpleRanges, o.SumRanges, o.OrderRanges, o.DistinctRanges = 1, 2, 0, 3, 0
			o.IndexUpdates, o.NonIndexUpdates, o.DeleteInserts, o.RangeSize = 2, 0, 2, 5
		}},
		{"read-write-text", contract.OLTPReadWrite, func(o *contract.OLTP) { o.Statements = contract.StatementsText }},
		{"read-write-skip-transaction", contract.OLTPReadWrite, func(o *contract.OLTP) { o.SkipTransaction = true }},
		{"write-only", contract.OLTPWriteOnly, nil},
		{"write-only-reconnect", contract.OLTPWriteOnly, func(o *contract.OLTP) { o.Tables, o.ReconnectEvery = 1, 2 }},
		{"update-index", contract.OLTPUpdateIndex, nil},
		{"update-non-index", contract.OLTPUpdateNonIndex, nil},
		{"insert", contract.OLTPInsert, nil},
		{"insert-own-ids", contract.OLTPInsert, func(o *contract.OLTP) { o.AutoIncrement = false }},
		{"delete", contract.OLTPDelete, nil},
		{"bulk-insert", contract.OLTPBulkInsert, nil},
		{"random-points", contract.OLTPRandomPoints, func(o *contract.OLTP) { o.Tables = 1 }},
		{"random-ranges", contract.OLTPRandomRanges, func(o *contract.OLTP) { o.Tables, o.NumberOfRanges = 1, 3 }},
		{"big-secondary", contract.OLTPPointSelect, func(o *contract.OLTP) {
			o.BigIntIDs, o.Secondary, o.CreateSecondary, o.AutoIncrement = true, true, false, false
			o.Engine, o.CreateTableOptions = "", "ROW_FORMAT=COMPRESSED"
		}},
		{"05-select", contract.OLTPPointSelect, old},
		{"05-oltp", contract.OLTPReadWrite, old},
		{"05-oltp-prepared", contract.OLTPReadWrite, both(old, func(o *contract.OLTP) { o.Statements = contract.StatementsPrepared })},
		{"05-oltp-myisam", contract.OLTPWriteOnly, both(old, func(o *contract.OLTP) { o.Engine = "MyISAM" })},
		{"05-insert-own-ids", contract.OLTPInsert, both(old, func(o *contract.OLTP) { o.AutoIncrement = false })},
		{"05-update-index", contract.OLTPUpdateIndex, both(old, func(o *contract.OLTP) { o.IndexUpdates = 7 })},
		{"05-bulk-insert", contract.OLTPBulkInsert, old},
		{"05-random-points", contract.OLTPRandomPoints, both(old, func(o *contract.OLTP) { o.Tables = 1 })},
		{"11-read-only", contract.OLTPReadOnly, func(o *contract.OLTP) { o.Compat = contract.Sysbench11 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := oltpOptions(tt.script)
			if tt.change != nil {
				tt.change(&opts)
			}
			opts.TableSize = 3
			got := strings.Join(oltpConversation(t, opts), "\n") + "\n"
			path := filepath.Join("testdata", "oltp-"+tt.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// oltpConversation is a preparation, and three events of the second of two clients.
func oltpConversation(t *testing.T, opts contract.OLTP) []string {
	t.Helper()
	o := newOLTP(opts)
	s := &tape{}
	if err := o.Prepare(&Env{Session: s, Tables: s, MariaDB: true, Mode: contract.PreparePerRun, Clients: 2}); err != nil {
		t.Fatal(err)
	}
	s.said = append(s.said, "-- client")
	c := o.NewClient(1, 2)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		operation, err := c.Event()
		if err != nil {
			t.Fatal(err)
		}
		s.said = append(s.said, "-- "+o.Operations()[operation])
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return s.said
}

var allScripts = []string{
	contract.OLTPPointSelect, contract.OLTPReadOnly, contract.OLTPReadWrite, contract.OLTPWriteOnly,
	contract.OLTPUpdateIndex, contract.OLTPUpdateNonIndex, contract.OLTPInsert, contract.OLTPDelete, contract.OLTPBulkInsert,
	contract.OLTPRandomPoints, contract.OLTPRandomRanges,
}

// oneTable leaves the scripts that know one table with one.
func oneTable(o contract.OLTP) contract.OLTP {
	if o.Script == contract.OLTPRandomPoints || o.Script == contract.OLTPRandomRanges {
		o.Tables = 1
	}
	return o
}

func TestOLTPEventDoesNotAllocate(t *testing.T) {
	for _, script := range allScripts {
		for _, statements := range []string{contract.StatementsPrepared, contract.StatementsText} {
			opts := oneTable(oltpOptions(script))
			opts.Statements = statements
			s := &tape{mute: true}
			c := newOLTP(opts).NewClient(0, 1)
			if err := c.Open([]Session{s}); err != nil {
				t.Fatal(err)
			}
			event := func() {
				if _, err := c.Event(); err != nil {
					t.Fatal(err)
				}
			}
			for range 200_000 / 10 * 3 { // buffers grow to their size
				if script != contract.OLTPBulkInsert {
					break
				}
				event()
			}
			if n := testing.AllocsPerRun(200, event); n != 0 {
				t.Errorf("%s, %s: %v allocations per event", script, statements, n)
			}
		}
	}
}

func TestOLTPBulkInsertFillsPackets(t *testing.T) {
	s := &tape{}
	o := newOLTP(oltpOptions(contract.OLTPBulkInsert))
	c := o.NewClient(0, 1)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	deadlock := &mysql.MySQLError{Number: erLockDeadlock}
	fail := true
	s.answer = func(string) error {
		if fail = !fail; !fail {
			return deadlock // every other one, the first included
		}
		return nil
	}
	const rows = 100_000
	for n := 0; n < rows; {
		switch _, err := c.Event(); {
		case err == nil:
			n++
		case !errors.Is(err, deadlock) || o.OnError(err) != Retry:
			t.Fatal(err)
		}
	}
	fail = false
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for i, text := range s.said {
		if len(text) > oltpPacket || i < len(s.said)-1 && len(text) < oltpPacket-64 {
			t.Errorf("packet %d has %d bytes", i, len(text))
		}
	}
	// After a deadlock the same text comes again.
	if got := bulkRows(t, slices.Compact(s.said)); got != rows {
		t.Errorf("%d rows were sent, want %d", got, rows)
	}
}

// bulkRows counts the rows of INSERTs, whose values must count them too.
func bulkRows(t *testing.T, texts []string) (n int) {
	t.Helper()
	for _, text := range texts {
		for _, row := range strings.Split(strings.TrimPrefix(text, "INSERT INTO sbtest1 VALUES"), "),(") {
			n++
			if want := fmt.Sprintf("%d,%d", n, n); strings.Trim(row, "()") != want {
				t.Fatalf("row %q, want %s", row, want)
			}
		}
	}
	return n
}

func TestOLTPErrors(t *testing.T) {
	deadlock := &mysql.MySQLError{Number: erLockDeadlock}
	for _, tt := range []struct {
		name   string
		change func(*contract.OLTP)
		err    error
		then   func(text string) error // the answers after the first error
		want   string                  // of what is said after the error, and whether the event is run again
	}{
		{"deadlock", nil, deadlock, nil, "ROLLBACK, retry"},
		{"deadlock without ROLLBACK", func(o *contract.OLTP) { o.NoRollbackOnRetry = true }, deadlock, nil, "retry"},
		{"deadlock without a transaction", func(o *contract.OLTP) { o.SkipTransaction = true }, deadlock, nil, "retry"},
		{"deadlock that is not to be ignored", func(o *contract.OLTP) { o.IgnoreErrors = []int32{1205} }, deadlock, nil, "fail"},
		{"nothing is to be ignored", func(o *contract.OLTP) { o.IgnoreErrors = nil }, deadlock, nil, "fail"},
		{"duplicate key", nil, &mysql.MySQLError{Number: 1062}, nil, "fail"},
		{"connection lost", nil, io.EOF, nil, "fail"},
		{"connection lost, to be ignored", func(o *contract.OLTP) {
			o.IgnoreErrors = []int32{2013}
			o.Tables = 1
			o.Script = contract.OLTPPointSelect
		},
			io.EOF, nil, "reconnect, SELECT c FROM sbtest1 WHERE id=?, retry"},
		{"connection lost for good", func(o *contract.OLTP) { o.IgnoreErrors = []int32{2006} },
			io.EOF, func(string) error { return io.EOF }, "reconnect, fail"},
		{"ROLLBACK fails", nil, deadlock, func(string) error { return io.ErrUnexpectedEOF }, "ROLLBACK, fail"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := oltpOptions(contract.OLTPReadWrite)
			if tt.change != nil {
				tt.change(&opts)
			}
			o := newOLTP(opts)
			s := &tape{}
			c := o.NewClient(0, 1)
			if err := c.Open([]Session{s}); err != nil {
				t.Fatal(err)
			}
			failed := false
			s.answer = func(text string) error {
				switch {
				case failed && tt.then != nil:
					return tt.then(text)
				case !failed && strings.HasPrefix(text, "SELECT"):
					failed = true
					s.said = nil
					return tt.err
				}
				return nil
			}
			_, err := c.Event()
			if err == nil {
				t.Fatal("the event succeeded")
			}
			action := map[Action]string{Retry: "retry", Fail: "fail"}[o.OnError(err)]
			var said []string
			for _, text := range append(s.said, action) {
				said = append(said, strings.TrimPrefix(strings.TrimPrefix(text, "-- "), "prepare: "))
			}
			if got := strings.Join(said, ", "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOLTPBeginThatCannotBePrepared(t *testing.T) {
	s := &tape{answer: func(text string) error {
		if text == "BEGIN" && len(text) > 0 {
			return &mysql.MySQLError{Number: erUnsupportedPS}
		}
		return nil
	}}
	c := newOLTP(oltpOptions(contract.OLTPWriteOnly)).NewClient(0, 1)
	if err := c.Open([]Session{s}); err != nil {
		t.Fatal(err)
	}
	s.said, s.answer = nil, nil
	if _, err := c.Event(); err != nil {
		t.Fatal(err)
	}
	if s.said[0] != "BEGIN" || s.said[len(s.said)-1] != "-- execute: COMMIT" {
		t.Errorf("said %q", s.said)
	}
}

func TestOLTPRequirements(t *testing.T) {
	for _, tt := range []struct {
		script string
		change func(*contract.OLTP)
		want   string // tables, statements, no primary key, privileges
	}{
		{contract.OLTPReadWrite, nil, "[sbtest1 sbtest2] 20 false [INSERT SELECT DELETE UPDATE INDEX]"},
		{contract.OLTPReadWrite, func(o *contract.OLTP) { o.SkipTransaction = true }, "[sbtest1 sbtest2] 18 false [INSERT SELECT DELETE UPDATE INDEX]"},
		{contract.OLTPReadOnly, func(o *contract.OLTP) { o.RangeSelects = false }, "[sbtest1 sbtest2] 4 false [INSERT SELECT DELETE INDEX]"},
		{contract.OLTPReadWrite, func(o *contract.OLTP) { o.Compat = contract.Sysbench05 }, "[sbtest1 sbtest2] 0 false [INSERT SELECT DELETE UPDATE INDEX]"},
		{contract.OLTPPointSelect, func(o *contract.OLTP) { o.Secondary = true }, "[sbtest1 sbtest2] 2 true [INSERT SELECT DELETE INDEX]"},
		{contract.OLTPReadWrite, func(o *contract.OLTP) { o.Compat, o.Engine = contract.Sysbench05, "MyISAM" }, "[sbtest1 sbtest2] 0 false [INSERT SELECT DELETE UPDATE INDEX LOCK TABLES]"},
		{contract.OLTPReadWrite, func(o *contract.OLTP) { o.CreateSecondary = false }, "[sbtest1 sbtest2] 20 false [INSERT SELECT DELETE UPDATE]"},
		{contract.OLTPInsert, nil, "[sbtest1 sbtest2] 0 false [INSERT SELECT DELETE INDEX]"},
		{contract.OLTPBulkInsert, nil, "[] 0 false [INSERT SELECT DELETE]"},
		{contract.OLTPRandomPoints, func(o *contract.OLTP) { o.Tables = 1; o.Compat = contract.Sysbench05 }, "[sbtest] 1 false [INSERT SELECT DELETE INDEX]"},
	} {
		opts := oltpOptions(tt.script)
		if tt.change != nil {
			tt.change(&opts)
		}
		o := newOLTP(opts)
		r := o.Requirements()
		if got := fmt.Sprint(r.Tables, " ", r.Statements, " ", r.NoPrimaryKey, " ", r.Privileges); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.script, got, tt.want)
		}
		s := &tape{}
		if err := o.NewClient(0, 1).Open([]Session{s}); err != nil || len(s.prepared) != r.Statements {
			t.Errorf("%s: %v, a client prepares %d statements, want %d", tt.script, err, len(s.prepared), r.Statements)
		}
	}
}

func TestOLTPLoad(t *testing.T) {
	for _, tt := range []struct {
		compat   string
		in, want contract.Load
	}{
		{contract.Sysbench05, contract.Load{Clients: 1}, contract.Load{Clients: 1, Events: 10000}},
		{contract.Sysbench10, contract.Load{Clients: 1}, contract.Load{Clients: 1, Duration: contract.Duration(10 * time.Second)}},
		{contract.Sysbench11, contract.Load{EventsPerClient: 3}, contract.Load{EventsPerClient: 3}},
		{contract.Sysbench05, contract.Load{Duration: 3}, contract.Load{Duration: 3}},
	} {
		opts := oltpOptions(contract.OLTPReadWrite)
		opts.Compat = tt.compat
		if got := newOLTP(opts).Load(tt.in); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.compat, got, tt.want)
		}
	}
}

// TestOLTPSegments: the clients of the random selects share the ids among them.
func TestOLTPSegments(t *testing.T) {
	opts := oneTable(oltpOptions(contract.OLTPRandomPoints))
	opts.Distribution = &contract.Distribution{Type: contract.DistributionUniform, Iterations: 12, SpecialPercent: 1, ParetoH: "0.2", ZipfianExponent: "0.8"}
	o := newOLTP(opts)
	for i := range 3 {
		var drawn []int64
		c := o.NewClient(i, 3).(*oltpClient)
		for range 10000 {
			drawn = append(drawn, c.segment.Next())
		}
		low, high := slices.Min(drawn), slices.Max(drawn)
		if wantLow, wantHigh := int64(i)*1000/3, int64(i+1)*1000/3; low != wantLow || high != wantHigh {
			t.Errorf("client %d draws from %d to %d, want %d to %d", i, low, high, wantLow, wantHigh)
		}
	}
}

func TestOLTPDistributionDefaults(t *testing.T) {
	explicit := &contract.Distribution{Type: contract.DistributionSpecial, Iterations: 3, SpecialPercent: 4, SpecialShare: 5, ParetoH: "0.25", ZipfianExponent: "1.5"}
	var got []string
	for _, compat := range []string{contract.Sysbench05, contract.Sysbench10, contract.Sysbench11} {
		got = append(got, fmt.Sprint(oltpDistribution(nil, compat).Kind, oltpDistribution(explicit, compat)))
	}
	want := "3 {3 3 4 5 0.25 1.5}; 2 {2 3 4 5 0.25 1.5}; 0 {2 3 4 5 0.25 1.5}"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}

// TestOLTPPartsMakeAllRows loads more than a part and holds the rows against what they
// must be.
func TestOLTPPartsMakeAllRows(t *testing.T) {
	opts := oltpOptions(contract.OLTPReadWrite)
	opts.TableSize = 2*oltpPartRows + 7
	s := &tape{}
	if err := newOLTP(opts).Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun}); err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`^INSERT INTO sbtest([12]) \(id, k, c, pad\) VALUES\(`)
	row := regexp.MustCompile(`^([0-9]+),([0-9]+),'[0-9]{11}(-[0-9]{11}){9}','[0-9]{11}(-[0-9]{11}){4}'$`)
	ids := map[string]map[string]bool{"1": {}, "2": {}}
	for _, text := range s.said {
		m := head.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if len(text) > oltpPacket {
			t.Errorf("a packet of %d bytes", len(text))
		}
		for _, values := range strings.Split(strings.TrimSuffix(text[len(m[0]):], ")"), "),(") {
			r := row.FindStringSubmatch(values)
			if r == nil {
				t.Fatalf("row %q", values)
			}
			ids[m[1]][r[1]] = true
		}
	}
	for table, seen := range ids {
		if int64(len(seen)) != opts.TableSize || !seen["1"] || !seen[fmt.Sprint(opts.TableSize)] {
			t.Errorf("table %s got %d ids, want 1 to %d", table, len(seen), opts.TableSize)
		}
	}
}
