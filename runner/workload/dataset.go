package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

// datasetTable notes what is loaded. It stands next to the data, so that both come
// and go together: a row for the making of the tables, step 0, and one for each part
// of the steps that was loaded.
const (
	datasetTable      = "_dbbench_dataset"
	datasetDefinition = "(step INT NOT NULL, part BIGINT NOT NULL, dataset CHAR(64) NOT NULL, PRIMARY KEY (step, part))"
)

// partTries is how often a part is tried that meets a deadlock or a lock that is held
// for too long.
const partTries = 5

// Numbers of errors that a workload or a load lives with.
const (
	erLockWaitTimeout = 1205
	erLockDeadlock    = 1213
)

// errStopped ends a load when the run ends early, which is then the failure.
var errStopped = errors.New("stopped while data was loaded")

// Dataset is the data of a workload, which runs may share. It is loaded in parts, by
// several connections at once; a load that was cut off goes on with the parts that are
// missing.
type Dataset struct {
	// Workload is the name of the workload.
	Workload string
	// Shape is what decides how the data looks, and nothing else: data of an equal Shape
	// is used again. It is compared by its JSON.
	Shape any
	// Create makes all tables anew and empty, with Env.Tables.
	Create func(env *Env) error
	// Steps fill the tables, one step after the other.
	Steps []Step
	// Check looks whether the data is whole, by its bounds and numbers of rows. It
	// returns what is wrong with it in a few words, "" where nothing is; err is that of
	// looking. That the tables exist is not its task.
	Check func(env *Env) (damage string, err error)
	// Tables are the names of the tables that Create makes.
	Tables []string
	// Loaders is the number of connections that load, 1 where it is less.
	Loaders int
}

// Step is a stage of a load: parts that do not depend on each other.
type Step struct {
	// Name says what is done, such as "load rows".
	Name  string
	Parts int64
	// Do does part 0 to Parts-1. It is called in a transaction, by several goroutines,
	// each with a session of its own.
	Do func(s Session, part int64) error
	// Undo removes what may be left of a part that was begun and not finished, where an
	// engine without transactions leaves anything. It may be nil.
	Undo func(s Session, part int64) error
}

// Prepare sees to it that the data is there, as env.Mode says: loaded anew, loaded
// where it is not whole, or only looked at.
func (d *Dataset) Prepare(env *Env) error {
	switch env.Mode {
	case contract.PrepareNever:
		return d.require(env)
	case contract.PreparePerDataset:
		return d.reuse(env)
	}
	return d.load(env, nil)
}

// Identity tells data of one shape from that of another: 64 hexadecimal digits.
func (d *Dataset) Identity() (string, error) {
	b, err := json.Marshal(struct {
		Workload string
		Shape    any
	}{d.Workload, d.Shape})
	if err != nil {
		return "", fmt.Errorf("identity of the data: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// require is PrepareNever.
func (d *Dataset) require(env *Env) error {
	damage, err := d.missingTable(env)
	if err == nil && damage == "" {
		damage, err = d.Check(env)
	}
	if err != nil || damage == "" {
		return err
	}
	return &contract.Failure{Class: contract.ClassPrepareFailed,
		Message: "prepare: Never expects the data to be there, but " + damage,
		Hint:    "set spec.prepare to PerDataset, and the data is loaded once"}
}

// missingTable names a table that does not exist, if one does not.
func (d *Dataset) missingTable(env *Env) (damage string, err error) {
	for _, name := range d.Tables {
		owned, err := env.Tables.Owned(name)
		if err != nil {
			return "", err
		}
		if !owned {
			return "the table " + name + " does not exist", nil
		}
	}
	return "", nil
}

// reuse is PreparePerDataset.
func (d *Dataset) reuse(env *Env) error {
	done, err := d.progress(env)
	if err != nil {
		return err
	}
	damage, err := d.missingTable(env)
	if err == nil && damage == "" && done.complete(d.Steps) {
		damage, err = d.Check(env)
	}
	if err != nil {
		return err
	}
	if damage != "" {
		done = nil
	}
	return d.load(env, done)
}

// progress are the parts that are loaded; nil where there is no data of this shape.
type progress map[partOfStep]bool

type partOfStep struct{ step, part int64 }

func (p progress) complete(steps []Step) bool {
	for i := range steps {
		if len(p.missing(steps, i)) > 0 {
			return false
		}
	}
	return true
}

// missing are the parts of a step that are not loaded.
func (p progress) missing(steps []Step, i int) []int64 {
	var parts []int64
	for part := range steps[i].Parts {
		if !p[partOfStep{stepNumber(i), part}] {
			parts = append(parts, part)
		}
	}
	return parts
}

// stepNumber is that of a step in the table.
func stepNumber(i int) int64 { return int64(i) + 1 }

func (d *Dataset) progress(env *Env) (progress, error) {
	owned, err := env.Tables.Owned(datasetTable)
	if err != nil || !owned {
		return nil, err
	}
	identity, err := d.Identity()
	if err != nil {
		return nil, err
	}
	var done progress
	err = env.Session.Query("SELECT step, part FROM "+datasetTable+" WHERE dataset = '"+identity+"'", func(row Row) error {
		step, _ := row.Int(0)
		part, _ := row.Int(1)
		if done == nil {
			done = progress{}
		}
		done[partOfStep{step, part}] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what is loaded: %w", err)
	}
	if !done[partOfStep{}] { // it was cut off while the tables were made
		return nil, nil
	}
	return done, nil
}

// load loads what is missing; done is nil where nothing is to be kept.
func (d *Dataset) load(env *Env, done progress) error {
	identity, err := d.Identity()
	if err != nil {
		return err
	}
	resumed := done != nil
	if !resumed {
		if err := d.create(env, identity); err != nil {
			return err
		}
	}
	var sessions loaders
	defer sessions.close()
	for i, step := range d.Steps {
		parts := done.missing(d.Steps, i)
		if len(parts) == 0 {
			continue
		}
		if err := sessions.open(env, min(d.Loaders, len(parts))); err != nil {
			return err
		}
		l := stepLoad{step: step, number: stepNumber(i), identity: identity, parts: parts, resumed: resumed, stopped: env.Stopped}
		if err := l.run(sessions.all(env)); err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
	}
	return nil
}

// create makes the tables, the one that notes what is loaded first and last: data that
// was begun is never taken for data of the shape before.
func (d *Dataset) create(env *Env, identity string) error {
	if err := env.Tables.Create(datasetTable, datasetDefinition, "", ""); err != nil {
		return err
	}
	if err := d.Create(env); err != nil {
		return err
	}
	return note(env.Session, 0, 0, identity)
}

func note(s Session, step, part int64, identity string) error {
	_, err := s.Exec("INSERT INTO " + datasetTable + " (step, part, dataset) VALUES (" +
		strconv.FormatInt(step, 10) + ", " + strconv.FormatInt(part, 10) + ", '" + identity + "')")
	return err
}

// loaders are the sessions of a load beyond Env.Session.
type loaders []Connection

// open sees to it that there are n sessions, or as many as the server gives: it may be
// full with one, and the load is only slower.
func (l *loaders) open(env *Env, n int) error {
	for env.Connect != nil && len(*l)+1 < n {
		c, err := env.Connect()
		if full(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("connect a loader: %w", err)
		}
		*l = append(*l, c)
	}
	return nil
}

// full reports whether a server gives no more connections.
func full(err error) bool {
	n := errorNumber(err)
	return n == 1040 || n == 1203 || n == 1226
}

func (l *loaders) all(env *Env) []Session {
	sessions := []Session{env.Session}
	for _, c := range *l {
		sessions = append(sessions, c)
	}
	return sessions
}

func (l *loaders) close() {
	for _, c := range *l {
		_ = c.Close() // it has said all that it had to say
	}
}

// stepLoad is the loading of a step's missing parts.
type stepLoad struct {
	step     Step
	number   int64
	identity string
	parts    []int64
	resumed  bool
	stopped  <-chan struct{}

	next   atomic.Int64 // index into parts
	failed atomic.Bool
}

// run has the sessions share the parts. It returns their first errors.
func (l *stepLoad) run(sessions []Session) error {
	errs := make([]error, len(sessions))
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			errs[i] = l.work(s)
			if errs[i] != nil {
				l.failed.Store(true)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *stepLoad) work(s Session) error {
	for !l.failed.Load() {
		i := l.next.Add(1) - 1
		if i >= int64(len(l.parts)) {
			return nil
		}
		select {
		case <-l.stopped:
			return errStopped
		default:
		}
		if err := l.part(s, l.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// part does one part; a lock that another loader held is no reason to give up.
func (l *stepLoad) part(s Session, part int64) error {
	again := l.resumed
	for try := 1; ; try++ {
		err := l.attempt(s, part, again)
		n := errorNumber(err)
		if n != erLockDeadlock && n != erLockWaitTimeout || try == partTries {
			return err
		}
		if _, err := s.Exec("ROLLBACK"); err != nil {
			return err
		}
		again = true
	}
}

// attempt notes the part in the transaction that loads it. What may be left of an
// earlier attempt is removed before: the locks of that are then gone.
func (l *stepLoad) attempt(s Session, part int64, again bool) error {
	if again && l.step.Undo != nil {
		if err := l.step.Undo(s, part); err != nil {
			return err
		}
	}
	if _, err := s.Exec("BEGIN"); err != nil {
		return err
	}
	if err := l.step.Do(s, part); err != nil {
		return err
	}
	if err := note(s, l.number, part, l.identity); err != nil {
		return err
	}
	_, err := s.Exec("COMMIT")
	return err
}

// errorNumber is the server's error number, 0 where the error is not the server's.
func errorNumber(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
