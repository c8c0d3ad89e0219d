package workload

import (
	"fmt"
	"strconv"

	"dbbench.dev/operator/runner/contract"
)

// The kinds of event of payload: the operation that is measured, and a COMMIT.
const (
	payloadWrite = iota
	payloadCommit
)

const (
	payloadTable       = "bench"
	payloadEngineField = "spec.workload.payload.engine"
)

// payloadOperation is how an operation is said.
type payloadOperation struct {
	name       string
	statement  string // with the name of the table for %s
	keyLast    bool   // among the arguments
	privileges []string
}

var payloadOperations = map[string]payloadOperation{
	contract.PayloadInsert:    {"insert", "INSERT INTO %s (id, data) VALUES (?, ?)", false, []string{"SELECT", "INSERT", "DELETE"}},
	contract.PayloadUpdate:    {"update", "UPDATE %s SET data = ? WHERE id = ?", true, []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
	contract.PayloadUpdateAll: {"update-all", "UPDATE %s SET data = ?", false, []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
	contract.PayloadReplace:   {"replace", "REPLACE INTO %s (id, data) VALUES (?, ?)", false, []string{"SELECT", "INSERT", "DELETE"}},
}

// payload writes values of a given size into a table of a key and a value. An event is
// one statement, or one COMMIT where the clients commit themselves.
//
// The rows belong to the clients in turn: client c of n has the rows c, c+n, c+2n and
// so on, each of which it writes once in a pass. Insert goes up the keys; Update and
// Replace jump over the client's rows, so that neighbours are not written one after the
// other. What the table holds after a pass depends on the seed alone, whatever the
// number of clients.
type payload struct {
	opts      contract.Payload
	operation payloadOperation
	values    *payloadValues
	loaded    payloadLengths // of the values that are there before
	written   payloadLengths
	// onePass has each client end after its rows.
	onePass bool
	// tables is the number of tables, as far as it is known.
	tables  int
	clients []*payloadClient
}

func newPayload(opts contract.Payload) *payload {
	return &payload{
		opts: opts, operation: payloadOperations[opts.Operation],
		values: newPayloadValues(opts.Seed, opts.Alphabet, opts.LargestSize()),
		loaded: newPayloadLengths(opts, opts.Size), written: newPayloadLengths(opts, opts.WrittenSize()), tables: 1,
	}
}

func (p *payload) inserts() bool    { return p.opts.Operation == contract.PayloadInsert }
func (p *payload) updatesAll() bool { return p.opts.Operation == contract.PayloadUpdateAll }

func (p *payload) Operations() []string { return []string{p.operation.name, "commit"} }

func (p *payload) Requirements() Requirements {
	r := Requirements{
		Tables: p.tableNames(p.tables), Engines: []string{p.opts.Engine}, EngineField: payloadEngineField,
		Privileges: p.operation.privileges, Sessions: 1, Statements: 1, LargestPacket: int(p.written.longest),
		TableBytes: p.opts.Rows / int64(p.tables) * max(p.loaded.shortest, p.written.shortest),
	}
	if !p.inserts() {
		r.LargestPacket = max(r.LargestPacket, payloadPacket, p.literalLength(p.loaded.longest))
	}
	return r
}

// Load ends the clients after one pass where l has no stop rule. Insert is over with
// the last row in any case.
func (p *payload) Load(l contract.Load) contract.Load {
	p.onePass = l.EventsPerClient == 0 && l.Events == 0 && l.Duration == 0
	p.tables = p.tableCount(int(l.Clients))
	return l
}

// Ends is part of Ender: the clients' statements, and their commits.
func (p *payload) Ends() (events int64) {
	for _, c := range p.clients {
		if c.limit < 0 {
			return 0
		}
		events += c.limit
		if !p.opts.Autocommit {
			events += (c.limit + p.opts.CommitEvery - 1) / p.opts.CommitEvery
		}
	}
	return events
}

func (p *payload) tableCount(clients int) int {
	if p.opts.TablePerClient {
		return clients
	}
	return 1
}

// table is the name of table i of n.
func (p *payload) table(i int64) string {
	if p.opts.TablePerClient {
		return payloadTable + strconv.FormatInt(i+1, 10)
	}
	return payloadTable
}

func (p *payload) tableNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = p.table(int64(i))
	}
	return names
}

// retried are errors after which the server has rolled back, or lets one do so and try
// again.
func retried(number uint16) bool {
	const erCheckread = 1020
	return number == erLockDeadlock || number == erLockWaitTimeout || number == erCheckread
}

// OnError repeats what a lock has prevented. All else ends the run.
func (p *payload) OnError(err error) Action {
	if retried(errorNumber(err)) {
		return Retry
	}
	return Fail
}

// Verify counts the rows, and digests the content where that is asked for.
func (p *payload) Verify(env *Env) (map[string]string, error) {
	tables := p.tableNames(p.tableCount(env.Clients))
	rows, err := countRows(env, tables)
	if err != nil {
		return nil, err
	}
	checks := map[string]string{"rows": strconv.FormatInt(rows, 10)}
	if want, known := p.rowsAfter(env.Clients); known && rows != want {
		return checks, &contract.Failure{Class: contract.ClassVerifyFailed,
			Message: fmt.Sprintf("the server acknowledged %d rows and holds %d", want, rows),
			Hint:    "look into the server's log for a crash or a full disk during the run, and whether somebody else writes to the benchmark's database"}
	}
	if n := p.unchanged(); n > 0 {
		checks["unchanged"] = fmt.Sprintf("%d statements changed nothing: the values were there already", n)
	}
	if !p.opts.Autocommit && !transactional(p.opts.Engine) {
		checks["commit"] = "has no effect: the engine " + p.opts.Engine + " has no transactions"
	}
	if !p.opts.Checksum {
		return checks, nil
	}
	digest, err := p.digest(env, tables)
	if err == nil {
		checks["contentSHA256"] = digest
	}
	return checks, err
}

// rowsAfter is how many rows there must be. It is not known of an Insert that had
// clients elsewhere.
func (p *payload) rowsAfter(clients int) (n int64, known bool) {
	if !p.inserts() {
		return p.opts.Rows, true
	}
	for _, c := range p.clients {
		n += c.done
	}
	return n, len(p.clients) == clients
}

func (p *payload) unchanged() (n int64) {
	for _, c := range p.clients {
		n += c.unchanged
	}
	return n
}
