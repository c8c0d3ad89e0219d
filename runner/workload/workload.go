// Package workload holds the benchmarks: what their clients say to the server, and
// nothing of how they are driven.
//
// A workload is straight-line code over a Session. It never sees database/sql, never
// sleeps, locks, uses a channel or looks at a clock: waiting, pacing and timing are
// the engine's. Per event it makes no look-up in a map, no formatting and no
// allocation beyond what the driver makes; what an event needs is built by Prepare,
// or when its client is made.
//
// A new workload is a type with the methods of Workload, a member of
// contract.Workload, and an entry in registry.
//
// The order of calls is: Requirements and Operations at any time; Prepare once, on a
// session of its own, in a database that exists and is selected; NewClient for each
// client; for each client, on whatever the engine runs it, Open, Event over and over
// and Close; then Verify, on the first session again. Dropping the tables is not a
// workload's task: whoever owns them does it.
package workload

import (
	"errors"

	"dbbench.dev/operator/runner/contract"
)

// Workload is a benchmark with all its options, for one run.
type Workload interface {
	// Operations names the kinds of event; an event's kind is an index into it.
	Operations() []string
	// Requirements is what the server must offer. They are checked before any load.
	Requirements() Requirements
	// Load returns l with the workload's conventions put in, such as its own end where l
	// has no stop rule.
	Load(l contract.Load) contract.Load
	// Prepare makes the tables and loads them.
	Prepare(env *Env) error
	// NewClient makes client i of n. It is called after Prepare, by one goroutine.
	NewClient(i, n int) Client
	// Verify holds the state of the database after the run against what it must be,
	// and returns findings for the record. It may be slow.
	Verify(env *Env) (map[string]string, error)
	// OnError says what becomes of an event that failed. It must decide by the type
	// and the number of the error.
	OnError(err error) Action
}

// Cleaner is a Workload that leaves more behind than the tables that it made.
type Cleaner interface {
	// Cleanup removes it, before the tables are dropped.
	Cleanup(env *Env) error
}

// Follower is a Workload whose clients need something that Prepare finds out. Where
// another replica of the run has prepared, Follow is called instead of it.
type Follower interface {
	// Follow finds it out, reading only. Of env it may use the session alone, which has
	// the benchmark's database selected.
	Follow(env *Env) error
}

// Reporter is a Workload whose clients may give up.
type Reporter interface {
	// Report is called after the load. It returns warnings for the record; an error fails
	// the run.
	Report() (warnings []string, err error)
}

// Ender is a Workload whose clients may end by themselves.
type Ender interface {
	// Ends is after how many events they all have, roughly; 0 where they do not. It is
	// called after NewClient, by any goroutine.
	Ends() int64
}

// Client is one client of a workload. It is used by one goroutine at a time.
type Client interface {
	// Open takes the client's sessions, as many as Requirements.Sessions, and prepares
	// what it executes. It is not an event.
	Open(sessions []Session) error
	// Event does one event and returns its kind. ErrDone is no event: it ends the client.
	Event() (operation int, err error)
	// Close ends the client's work, such as with a last COMMIT. The sessions are closed
	// by their owner. It is not called after an event that ended the run.
	Close() error
}

// Requirements are what a run needs of the server.
type Requirements struct {
	// Tables are those that the workload makes.
	Tables []string
	// Engines are the storage engines that the tables name, and EngineField the field
	// of the spec that does so.
	Engines     []string
	EngineField string
	// NoPrimaryKey says that tables without a primary key are made.
	NoPrimaryKey bool
	// Privileges are those that are used beyond CREATE and DROP of tables: some of INSERT,
	// SELECT, UPDATE, DELETE, INDEX, ALTER, LOCK TABLES.
	Privileges []string
	// TableBytes is roughly how large the largest table becomes, 0 where it is not known.
	TableBytes int64
	// Sessions and Statements are the connections of a client and the statements that
	// it prepares on them.
	Sessions   int
	Statements int
	// LargestPacket is the length in bytes of the longest statement or argument.
	LargestPacket int
	// MultiStatements asks for sessions that take several statements in one text.
	MultiStatements bool

	// ConnectInRun has the clients connect after their release and close before the
	// clock stops, so that both count in the elapsed time.
	ConnectInRun bool
}

// ErrDone is what Event returns when the client has nothing left to do, whatever the
// stop rules would still allow.
var ErrDone = errors.New("the client has nothing left to do")

// Action is what becomes of an event that failed.
type Action int

// The actions.
const (
	// Fail ends the run: it has failed.
	Fail Action = iota
	// Retry does the event again; all attempts make one latency.
	Retry
	// Skip counts an error and goes on with the next event.
	Skip
)

// Env is what Prepare and Verify work with.
type Env struct {
	Session Session
	Tables  Tables
	// Adoption is for workloads that do not make their tables with Tables.
	Adoption Adoption
	// MariaDB tells the flavours apart where their syntax differs.
	MariaDB bool
	// Mode says whether data may be loaded.
	Mode contract.Prepare
	// Clients is the number of the load's clients, over all replicas.
	Clients int
	// Stopped is closed when the run ends early; long loads look at it.
	Stopped <-chan struct{}
	// Connect opens another session with the benchmark's database selected, for a load
	// that uses several. It is nil where there is only Session.
	Connect func() (Connection, error)
}

// Connection is a session that whoever opened it closes.
type Connection interface {
	Session
	Close() error
}

// Tables makes and drops the tables of a workload. It keeps to what the benchmark
// owns: a table that somebody else made is never written to.
type Tables interface {
	// Create makes a table: definition is the text after CREATE TABLE and the name, such
	// as "(id INT)", and options what follows, such as "ENGINE = InnoDB". A table of the
	// benchmark with that name is dropped before. Where engine is not empty, the table
	// must have got it.
	Create(name, definition, options, engine string) error
	// Owned reports whether a table exists that is the benchmark's. One that is somebody
	// else's is an error.
	Owned(name string) (bool, error)
}

// Adoption makes tables the benchmark's that statements of the user's own create.
type Adoption interface {
	// Adopt calls make, and takes over the tables that are there after it, also where it
	// failed, and were not before.
	Adopt(make func() error) error
	// Clear drops the tables of the benchmark, but for its own notes.
	Clear() error
}

// New makes the workload that is set in w.
func New(w contract.Workload) (Workload, error) {
	name := w.Name()
	for _, e := range registry {
		if e.name == name {
			return e.new(w), nil
		}
	}
	return nil, errors.New("workload: exactly one member must be set")
}

// registry holds how to make each member of contract.Workload.
var registry = []struct {
	name string
	new  func(contract.Workload) Workload
}{
	{"slap", func(w contract.Workload) Workload { return newSlap(*w.Slap) }},
	{"oltp", func(w contract.Workload) Workload { return newOLTP(*w.OLTP) }},
	{"payload", func(w contract.Workload) Workload { return newPayload(*w.Payload) }},
	{"sql", func(w contract.Workload) Workload { return newSQL(*w.SQL) }},
	{"linkbench", func(w contract.Workload) Workload { return newLinkBench(*w.LinkBench) }},
}
