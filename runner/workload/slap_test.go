package workload

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"dbbench.dev/operator/runner/contract"
)

var update = flag.Bool("update", false, "write the golden files anew")

// script is a session that notes what is said to it.
type script struct {
	said []string
	keys []string // rows of SELECT id
	err  error
	mute bool
}

func (s *script) say(text string) error {
	if !s.mute {
		s.said = append(s.said, strings.Clone(text)) // the text lives until the call returns
	}
	return s.err
}

func (s *script) Exec(q string) (Result, error) { return Result{}, s.say(q) }
func (s *script) Query(q string, row RowFunc) error {
	if err := s.say(q); err != nil || row == nil {
		return err
	}
	for _, k := range s.keys {
		if err := row(Row{[]byte(k)}); err != nil {
			return err
		}
	}
	return nil
}
func (s *script) Reconnect() error               { return s.say("-- reconnect") }
func (s *script) Prepare(string) (Handle, error) { return 0, errors.New("slap prepares nothing") }
func (s *script) ExecPrepared(Handle, []Arg) (Result, error) {
	return Result{}, errors.New("slap prepares nothing")
}
func (s *script) QueryPrepared(Handle, []Arg, RowFunc) error {
	return errors.New("slap prepares nothing")
}

// Create is that of Tables; the mark is its maker's business.
func (s *script) Create(name, definition, options, engine string) error {
	return s.say(strings.TrimSpace("CREATE TABLE "+name+" "+definition+" "+options) + " -- engine " + engine)
}
func (s *script) Owned(string) (bool, error) { return false, nil }

func options() contract.Slap {
	seed := int64(1)
	return contract.Slap{LoadType: contract.SlapMixed, IntColumns: 1, CharColumns: 1, UniqueQueries: 2, UniqueWrites: 2,
		PreloadRows: 4, ExactCounts: true, Seed: &seed}
}

// TestSlapTexts holds all that slap says against golden files; a reader can compare
// them with the general log of a server that mariadb-slap has run on.
func TestSlapTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		mariadb bool
		change  func(*contract.Slap)
	}{
		"mixed":     {true, func(*contract.Slap) {}},
		"mixed-key": {true, func(o *contract.Slap) { o.AutoIncrement = true }},
		"write":     {true, func(o *contract.Slap) { o.LoadType = contract.SlapWrite; o.GUIDPrimary = true; o.SecondaryIndexes = 2 }},
		"read": {true, func(o *contract.Slap) {
			o.LoadType = contract.SlapRead
			o.Engine, o.EngineOption = "MyISAM", "max_rows=9"
		}},
		"read-mysql": {false, func(o *contract.Slap) {
			o.LoadType = contract.SlapRead
			o.Engine, o.EngineOption = "MyISAM", "max_rows=9"
		}},
		"key":             {true, func(o *contract.Slap) { o.LoadType = contract.SlapKey; o.AutoIncrement = true }},
		"update":          {true, func(o *contract.Slap) { o.LoadType = contract.SlapUpdate; o.IntColumns, o.CharColumns = 2, 2 }},
		"update-key":      {true, func(o *contract.Slap) { o.LoadType = contract.SlapUpdate; o.GUIDPrimary = true }},
		"indexed":         {true, func(o *contract.Slap) { o.IntColumnsIndexed, o.CharColumnsIndexed = true, true }},
		"commit":          {true, func(o *contract.Slap) { o.LoadType = contract.SlapRead; o.CommitEvery = 2 }},
		"detach":          {true, func(o *contract.Slap) { o.LoadType = contract.SlapRead; o.DetachEvery = 2 }},
		"commit-detach":   {true, func(o *contract.Slap) { o.LoadType = contract.SlapRead; o.CommitEvery, o.DetachEvery = 2, 2 }},
		"blackhole":       {true, func(o *contract.Slap) { o.LoadType = contract.SlapKey; o.AutoIncrement, o.Engine = true, "BLACKHOLE" }},
		"counts-as-asked": {true, func(o *contract.Slap) { o.ExactCounts = false }},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options()
			tt.change(&opts)
			got := strings.Join(conversation(t, opts, tt.mariadb), "\n") + "\n"
			path := filepath.Join("testdata", "slap-"+name+".golden")
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

// conversation is a preparation and one client's pass and a half.
func conversation(t *testing.T, opts contract.Slap, mariadb bool) []string {
	t.Helper()
	s := newSlap(opts)
	session := &script{keys: []string{"1", "2", "3"}}
	env := &Env{Session: session, Tables: session, MariaDB: mariadb, Mode: contract.PreparePerRun}
	if err := s.Prepare(env); err != nil {
		t.Fatal(err)
	}
	session.said = append(session.said, "-- client")
	c := s.NewClient(0, 1)
	if err := c.Open([]Session{session}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		operation, err := c.Event()
		if err != nil {
			t.Fatal(err)
		}
		session.said = append(session.said, "-- "+s.Operations()[operation])
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return session.said
}

func TestSlapLoad(t *testing.T) {
	for _, tt := range []struct {
		name     string
		exact    bool
		in, want contract.Load
	}{
		{"no stop rule: a pass", true, contract.Load{Clients: 4}, contract.Load{Clients: 4, EventsPerClient: 11}},
		{"no stop rule, counts as asked", false, contract.Load{Clients: 4}, contract.Load{Clients: 4, EventsPerClient: 10}},
		{"the remainder is dropped", true, contract.Load{Clients: 4, Events: 90}, contract.Load{Clients: 4, EventsPerClient: 22}},
		{"less than one for each: a pass", true, contract.Load{Clients: 4, Events: 2}, contract.Load{Clients: 4, EventsPerClient: 11}},
		{"shared", false, contract.Load{Clients: 4, Events: 90}, contract.Load{Clients: 4, Events: 90}},
		{"per client", true, contract.Load{Clients: 4, EventsPerClient: 7}, contract.Load{Clients: 4, EventsPerClient: 7}},
		{"duration alone", true, contract.Load{Clients: 4, Duration: 9}, contract.Load{Clients: 4, Duration: 9}},
	} {
		opts := options()
		opts.UniqueQueries, opts.ExactCounts = 10, tt.exact
		if got := newSlap(opts).Load(tt.in); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSlapValues(t *testing.T) {
	opts := options()
	opts.UniqueWrites = 500
	shape := regexp.MustCompile(`^INSERT INTO t1 VALUES \([0-9]{1,10},'[0-9A-TW-Za-z]{126}'\)$`)
	seen := map[string]bool{}
	for _, text := range newSlap(opts).inserts {
		if !shape.MatchString(text) {
			t.Errorf("INSERT %q", text)
		}
		seen[text] = true
	}
	if len(seen) != 500 {
		t.Errorf("%d distinct INSERTs of 500", len(seen))
	}
	if len(slapAlphabet) != 60 {
		t.Errorf("an alphabet of %d", len(slapAlphabet))
	}
}

func TestSlapRequirements(t *testing.T) {
	opts := options()
	opts.LoadType, opts.Engine = contract.SlapUpdate, "Aria"
	r := newSlap(opts).Requirements()
	if got := fmt.Sprintf("%v %v %v %v %v %v", r.Tables, r.Engines, r.EngineField, r.Privileges, r.Sessions, r.NoPrimaryKey); got !=
		"[t1] [Aria] spec.workload.slap.engine [INSERT UPDATE] 1 true" {
		t.Error(got)
	}
	opts.GUIDPrimary = true
	if r := newSlap(opts).Requirements(); r.NoPrimaryKey || fmt.Sprint(r.Privileges) != "[INSERT SELECT UPDATE]" {
		t.Errorf("%+v", r)
	}
}

func TestSlapErrors(t *testing.T) {
	opts := options()
	opts.LoadType, opts.AutoIncrement = contract.SlapKey, true
	s := newSlap(opts)
	broken := &script{err: errors.New("broken")}
	if err := s.Prepare(&Env{Session: broken, Tables: broken, Mode: contract.PreparePerRun}); !errors.Is(err, broken.err) {
		t.Errorf("prepare: %v", err)
	}
	empty := &script{}
	var f *contract.Failure
	if err := s.Prepare(&Env{Session: empty, Tables: empty, Mode: contract.PreparePerRun}); !errors.As(err, &f) {
		t.Errorf("a table without keys: %v", err)
	}
	if err := s.Prepare(&Env{Session: empty, Tables: empty, Mode: contract.PrepareNever}); !errors.As(err, &f) || f.Class != contract.ClassInvalidRunSpec {
		t.Errorf("a mode that slap does not know: %v", err)
	}
	stopped := make(chan struct{})
	close(stopped)
	full := &script{keys: []string{"1"}}
	if err := s.Prepare(&Env{Session: full, Tables: full, Mode: contract.PreparePerRun, Stopped: stopped}); err == nil {
		t.Error("a load that was stopped went on")
	}
	if err := s.Prepare(&Env{Session: full, Tables: full, Mode: contract.PreparePerRun}); err != nil {
		t.Fatal(err)
	}
	c := s.NewClient(0, 1)
	if err := c.Open([]Session{broken}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Event(); !errors.Is(err, broken.err) || s.OnError(err) != Fail {
		t.Errorf("event: %v", err)
	}
}

func TestSlapEventDoesNotAllocate(t *testing.T) {
	for _, loadType := range []string{contract.SlapWrite, contract.SlapRead, contract.SlapKey, contract.SlapUpdate, contract.SlapMixed} {
		opts := options()
		opts.LoadType, opts.AutoIncrement, opts.CommitEvery, opts.DetachEvery = loadType, true, 3, 2
		s := newSlap(opts)
		session := &script{keys: []string{"1", "22", "333"}}
		if err := s.Prepare(&Env{Session: session, Tables: session, Mode: contract.PreparePerRun}); err != nil {
			t.Fatal(err)
		}
		c := s.NewClient(0, 1)
		if err := c.Open([]Session{session}); err != nil {
			t.Fatal(err)
		}
		session.mute = true
		if n := testing.AllocsPerRun(200, func() {
			if _, err := c.Event(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per event", loadType, n)
		}
	}
}

func TestNewKnowsEveryMember(t *testing.T) {
	opts := options()
	if w, err := New(contract.Workload{Slap: &opts}); err != nil || w == nil {
		t.Errorf("slap: %v", err)
	}
	if _, err := New(contract.Workload{}); err == nil {
		t.Error("a workload without a member was made")
	}
}

func TestRow(t *testing.T) {
	row := Row{nil, int64(-7), uint64(8), []byte("9x"), []byte("10"), "s", 1.5, float32(0.5)}
	var texts []string
	for i := range row {
		texts = append(texts, string(row.Append(nil, i)))
	}
	if got := strings.Join(texts, ","); got != ",-7,8,9x,10,s,1.5,0.5" {
		t.Errorf("texts %q", got)
	}
	if !row.Null(0) || row.Null(1) {
		t.Error("NULL is mistaken")
	}
	for i, want := range map[int]int64{1: -7, 2: 8, 4: 10} {
		if n, ok := row.Int(i); !ok || n != want {
			t.Errorf("column %d: %d, %v", i, n, ok)
		}
	}
	for _, i := range []int{0, 3, 5} {
		if _, ok := row.Int(i); ok {
			t.Errorf("column %d is taken for an integer", i)
		}
	}
}
