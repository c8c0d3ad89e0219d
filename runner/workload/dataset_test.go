package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

// noted are rows of the table that notes what is loaded.
func noted(d *Dataset, parts ...[2]int64) map[string][]Row {
	identity, err := d.Identity()
	if err != nil {
		panic(err)
	}
	var rows []Row
	for _, p := range parts {
		rows = append(rows, Row{p[0], p[1]})
	}
	return map[string][]Row{"SELECT step, part FROM _dbbench_dataset WHERE dataset = '" + identity + "'": rows}
}

// twoSteps is a dataset that only says what is done.
func twoSteps() *Dataset {
	say := func(text string) func(Session, int64) error {
		return func(s Session, part int64) error {
			_, err := s.Exec(fmt.Sprint(text, " ", part))
			return err
		}
	}
	return &Dataset{
		Workload: "test", Shape: map[string]int{"rows": 3}, Tables: []string{"t"},
		Create: func(env *Env) error { return env.Tables.Create("t", "(id INT)", "", "") },
		Steps:  []Step{{Name: "load", Parts: 2, Do: say("do"), Undo: say("undo")}, {Name: "index", Parts: 1, Do: say("index")}},
		Check:  func(env *Env) (string, error) { _, err := env.Session.Exec("check"); return "", err },
	}
}

// short leaves of what was said what a reader of a test wants to see.
func short(said []string) string {
	var out []string
	for _, text := range said {
		text = strings.TrimSuffix(text, " -- engine ")
		switch {
		case strings.HasPrefix(text, "CREATE TABLE _dbbench_dataset"):
			text = "forget"
		case strings.HasPrefix(text, "CREATE TABLE"):
			text = "create"
		case strings.HasPrefix(text, "INSERT INTO _dbbench_dataset"):
			_, values, _ := strings.Cut(text, "VALUES (")
			text = "note " + values[:4]
		case strings.HasPrefix(text, "SELECT step"):
			text = "progress"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

const wholeLoad = "forget; create; note 0, 0; BEGIN; do 0; note 1, 0; COMMIT; BEGIN; do 1; note 1, 1; COMMIT; BEGIN; index 0; note 2, 0; COMMIT"

func TestDatasetModes(t *testing.T) {
	all := [][2]int64{{0, 0}, {1, 0}, {1, 1}, {2, 0}}
	both := map[string]bool{"t": true, datasetTable: true}
	damaged := func(d *Dataset) {
		d.Check = func(*Env) (string, error) { return "a row is missing", nil }
	}
	for _, tt := range []struct {
		name   string
		mode   contract.Prepare
		tables map[string]bool
		noted  [][2]int64
		change func(*Dataset)
		want   string
	}{
		{"per run: always anew", contract.PreparePerRun, both, all, nil, wholeLoad},
		{"nothing is there", contract.PreparePerDataset, nil, nil, nil, wholeLoad},
		{"all is there", contract.PreparePerDataset, both, all, nil, "progress; check"},
		{"data of another shape", contract.PreparePerDataset, both, nil, nil, "progress; " + wholeLoad},
		{"cut off while the tables were made", contract.PreparePerDataset, both, [][2]int64{{1, 0}}, nil, "progress; " + wholeLoad},
		{"cut off", contract.PreparePerDataset, both, [][2]int64{{0, 0}, {1, 1}}, nil,
			"progress; undo 0; BEGIN; do 0; note 1, 0; COMMIT; BEGIN; index 0; note 2, 0; COMMIT"},
		{"a table is gone", contract.PreparePerDataset, map[string]bool{datasetTable: true}, all, nil, "progress; " + wholeLoad},
		{"damaged", contract.PreparePerDataset, both, all, damaged, "progress; " + wholeLoad},
		{"never: all is there", contract.PrepareNever, map[string]bool{"t": true}, nil, nil, "check"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := twoSteps()
			if tt.change != nil {
				tt.change(d)
			}
			s := &tape{tables: tt.tables, rows: noted(d, tt.noted...)}
			if err := d.Prepare(&Env{Session: s, Tables: s, Mode: tt.mode}); err != nil {
				t.Fatal(err)
			}
			if got := short(s.said); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDatasetThatIsNeverLoadedMustBeThere(t *testing.T) {
	for name, tt := range map[string]struct {
		tables map[string]bool
		damage string
		want   string
	}{
		"no table": {nil, "", "the table t does not exist"},
		"damaged":  {map[string]bool{"t": true}, "a row is missing", "a row is missing"},
	} {
		d := twoSteps()
		d.Check = func(*Env) (string, error) { return tt.damage, nil }
		s := &tape{tables: tt.tables}
		err := d.Prepare(&Env{Session: s, Tables: s, Mode: contract.PrepareNever})
		var f *contract.Failure
		if !errors.As(err, &f) || f.Class != contract.ClassPrepareFailed || !strings.Contains(f.Message, tt.want) || f.Hint == "" {
			t.Errorf("%s: %+v", name, err)
		}
		if len(s.said) != 0 {
			t.Errorf("%s: said %q", name, s.said)
		}
	}
}

func TestDatasetIdentity(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range []*Dataset{
		{Workload: "a", Shape: 1}, {Workload: "a", Shape: 2}, {Workload: "b", Shape: 1}, {Workload: "a", Shape: map[string]int{"x": 1}},
	} {
		identity, err := d.Identity()
		if err != nil || len(identity) != 64 || seen[identity] {
			t.Errorf("%+v: identity %q, %v", d, identity, err)
		}
		seen[identity] = true
	}
	if _, err := (&Dataset{Shape: func() {}}).Identity(); err == nil {
		t.Error("a shape that has no JSON has an identity")
	}
}

func TestDatasetTriesAPartAgain(t *testing.T) {
	d := twoSteps()
	deadlocks := 2
	s := &tape{answer: func(text string) error {
		if text == "do 1" && deadlocks > 0 {
			deadlocks--
			return &mysql.MySQLError{Number: erLockDeadlock}
		}
		return nil
	}}
	if err := d.Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun}); err != nil {
		t.Fatal(err)
	}
	if got, want := short(s.said), "BEGIN; do 1; ROLLBACK; undo 1; BEGIN; do 1; ROLLBACK; undo 1; BEGIN; do 1; note 1, 1; COMMIT"; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant in it %s", got, want)
	}
	deadlocks = partTries
	if err := d.Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun}); errorNumber(err) != erLockDeadlock {
		t.Errorf("a part that never succeeds: %v", err)
	}
}

// locked makes a tape fit for several loaders.
type locked struct {
	*tape
	mu     *sync.Mutex
	closed *int
}

func (l locked) Exec(q string) (Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tape.Exec(q)
}

func (l locked) Close() error { *l.closed++; return nil }

func TestDatasetLoaders(t *testing.T) {
	for name, tt := range map[string]struct {
		loaders   int
		refuse    error // of the third connection
		connected int
		fails     bool
	}{
		"one":                      {1, nil, 0, false},
		"not more than parts":      {100, nil, 9, false},
		"the server is full":       {8, &mysql.MySQLError{Number: 1040}, 2, false},
		"the server does not talk": {8, errors.New("lost"), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			closed, opened := 0, 0
			s := locked{&tape{}, &sync.Mutex{}, &closed}
			d := twoSteps()
			d.Steps[0].Parts, d.Loaders = 10, tt.loaders
			err := d.Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun, Connect: func() (Connection, error) {
				if opened == 2 && tt.refuse != nil {
					return nil, tt.refuse
				}
				opened++
				return s, nil
			}})
			if (err != nil) != tt.fails || opened != tt.connected || closed != opened {
				t.Errorf("%v, %d connections, %d closed", err, opened, closed)
			}
			for part := range 10 {
				if want := fmt.Sprint("do ", part); !tt.fails && !slices.Contains(s.said, want) {
					t.Errorf("%s is missing", want)
				}
			}
		})
	}
}

func TestDatasetStops(t *testing.T) {
	stopped := make(chan struct{})
	s := &tape{answer: func(text string) error {
		if text == "do 0" {
			close(stopped)
		}
		return nil
	}}
	err := twoSteps().Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun, Stopped: stopped})
	if !errors.Is(err, errStopped) || slices.Contains(s.said, "do 1") || !strings.HasSuffix(short(s.said), "note 1, 0; COMMIT") {
		t.Errorf("%v, said %s", err, short(s.said))
	}
}
