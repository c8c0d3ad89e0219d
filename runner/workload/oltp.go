package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/workload/random"
)

const oltpEngineField = "spec.workload.oltp.engine"

// Where neither clients nor time end a load, sysbench ends it itself.
const (
	oltpEvents05 = 10000            // max-requests of 0.5
	oltpDuration = 10 * time.Second // time of 1.0
)

// oltp is sysbench's set of OLTP tests: tables of random texts, and scripts that read
// and write them by random ids. An event is one run of a script's event function, with
// all its retries.
type oltp struct {
	opts   contract.OLTP // with the conventions of the script and of the generation put in
	script oltpScript
	// templates are the statements, by their kind.
	templates    [oltpKinds]oltpTemplate
	begin        string // "" where the script has no transaction
	commit       string
	distribution random.Distribution
	seed         uint64
}

// oltpScript is a test.
type oltpScript struct {
	// operation names its event in the results.
	operation string
	// statements are those that it prepares for each table.
	statements []oltpKind
	// transaction is whether BEGIN and COMMIT go around them.
	transaction bool
	event       func(*oltpClient) error
	// privileges are those that the statements need.
	privileges []string
}

var (
	oltpReads       = []oltpKind{oltpPoint, oltpSimple, oltpSum, oltpOrder, oltpDistinct}
	oltpWrites      = []oltpKind{oltpIndexUpdate, oltpNonIndexUpdate, oltpDelete, oltpInsert}
	oltpWritesNeeds = []string{"SELECT", "UPDATE", "DELETE", "INSERT"}
)

var oltpScripts = map[string]oltpScript{
	contract.OLTPPointSelect: {"select", []oltpKind{oltpPoint}, false, (*oltpClient).pointSelects, []string{"SELECT"}},
	contract.OLTPReadOnly:    {"transaction", oltpReads, true, (*oltpClient).readOnly, []string{"SELECT"}},
	contract.OLTPReadWrite: {"transaction", slices.Concat(oltpReads, oltpWrites), true, (*oltpClient).readWrite,
		oltpWritesNeeds},
	contract.OLTPWriteOnly:      {"transaction", oltpWrites, true, (*oltpClient).writeOnly, oltpWritesNeeds},
	contract.OLTPUpdateIndex:    {"update", []oltpKind{oltpIndexUpdate}, false, (*oltpClient).indexUpdates, []string{"SELECT", "UPDATE"}},
	contract.OLTPUpdateNonIndex: {"update", []oltpKind{oltpNonIndexUpdate}, false, (*oltpClient).nonIndexUpdates, []string{"SELECT", "UPDATE"}},
	contract.OLTPInsert:         {"insert", []oltpKind{oltpInsert}, false, (*oltpClient).insert, []string{"INSERT"}},
	contract.OLTPDelete:         {"delete", []oltpKind{oltpDelete}, false, (*oltpClient).delete, []string{"SELECT", "DELETE"}},
	contract.OLTPBulkInsert:     {"row", nil, false, (*oltpClient).bulkInsert, []string{"INSERT"}},
	contract.OLTPRandomPoints:   {"select", []oltpKind{oltpRandomPoints}, false, (*oltpClient).randomPoints, []string{"SELECT"}},
	contract.OLTPRandomRanges:   {"select", []oltpKind{oltpRandomRanges}, false, (*oltpClient).randomRanges, []string{"SELECT"}},
}

// oltpKind is a kind of statement.
type oltpKind int

const (
	oltpPoint oltpKind = iota
	oltpSimple
	oltpSum
	oltpOrder
	oltpDistinct
	oltpIndexUpdate
	oltpNonIndexUpdate
	oltpDelete
	oltpInsert
	oltpRandomPoints
	oltpRandomRanges
	oltpKinds
)

// oltpTemplate is a statement without its table and its arguments: the text before the
// name of the table, and what stands before, between and after the arguments.
type oltpTemplate struct {
	head  string
	parts []string
}

// newTemplate takes the text before and after the name of the table, with a question
// mark for each argument.
func newTemplate(head, tail string) oltpTemplate {
	return oltpTemplate{head, strings.Split(tail, "?")}
}

// prepared is the text as it is prepared for a table.
func (t oltpTemplate) prepared(table string) string {
	return t.head + table + strings.Join(t.parts, "?")
}

func newOLTP(opts contract.OLTP) *oltp {
	o := &oltp{opts: opts, script: oltpScripts[opts.Script], seed: rand.Uint64()}
	if opts.Seed != nil {
		o.seed = uint64(*opts.Seed)
	}
	o.resolve()
	o.makeTemplates()
	if o.script.transaction && !opts.SkipTransaction {
		o.begin, o.commit = "BEGIN", "COMMIT"
		if o.is05() && !transactional(opts.Engine) {
			o.begin, o.commit = o.lockTables(), "UNLOCK TABLES"
		}
	}
	return o
}

// is05 is whether the generation is that of 0.5, which has scripts of its own.
func (o *oltp) is05() bool { return o.opts.Compat == contract.Sysbench05 }

// resolve puts in what a script does whatever its options say, and the defaults that
// differ by generation.
func (o *oltp) resolve() {
	if o.opts.Script == contract.OLTPPointSelect {
		o.opts.PointSelects = 1
	}
	if o.is05() && !o.script.transaction {
		o.opts.IndexUpdates, o.opts.NonIndexUpdates = 1, 1
	}
	if o.opts.Statements == "" {
		o.opts.Statements = contract.StatementsPrepared
		// 0.5 prepares nothing but where a statement has a list of arguments.
		if o.is05() && !o.isRandomSelect() {
			o.opts.Statements = contract.StatementsText
		}
	}
	if o.opts.Script == contract.OLTPInsert {
		o.opts.Statements = contract.StatementsText // in all generations
	}
	o.distribution = oltpDistribution(o.opts.Distribution, o.opts.Compat)
}

func (o *oltp) isRandomSelect() bool {
	return o.opts.Script == contract.OLTPRandomPoints || o.opts.Script == contract.OLTPRandomRanges
}

// oltpDistribution translates the options. Values that are not there are sysbench's;
// values that are there were validated.
func oltpDistribution(d *contract.Distribution, compat string) random.Distribution {
	if d == nil {
		d = &contract.Distribution{Iterations: 12, SpecialPercent: 1, SpecialShare: 75, ParetoH: "0.2", ZipfianExponent: "0.8"}
	}
	kinds := map[string]random.Kind{
		contract.DistributionUniform: random.Uniform, contract.DistributionGaussian: random.Gaussian,
		contract.DistributionSpecial: random.Special, contract.DistributionSpecialCorrected: random.SpecialCorrected,
		contract.DistributionPareto: random.Pareto, contract.DistributionZipfian: random.Zipfian,
		"": random.Special,
	}
	kind := kinds[d.Type]
	switch {
	case d.Type == "" && compat == contract.Sysbench11:
		kind = random.Uniform
	case kind == random.Special && compat == contract.Sysbench05:
		kind = random.SpecialCorrected // 0.5 draws a second number, and knows no skew
	}
	h, _ := strconv.ParseFloat(d.ParetoH, 64)
	exponent, _ := strconv.ParseFloat(d.ZipfianExponent, 64)
	return random.Distribution{Kind: kind, Iterations: int(d.Iterations), SpecialPercent: int(d.SpecialPercent),
		SpecialShare: int(d.SpecialShare), ParetoH: h, Exponent: exponent}
}

func (o *oltp) makeTemplates() {
	column, sum, to := "c", "k", "?"
	if o.is05() {
		sum, to = "K", "?+"+strconv.FormatInt(o.opts.RangeSize-1, 10) // the server adds
		if o.opts.Script == contract.OLTPPointSelect {
			column = "pad"
		}
	}
	between := " WHERE id BETWEEN ? AND " + to
	o.templates = [oltpKinds]oltpTemplate{
		oltpPoint:          newTemplate("SELECT "+column+" FROM ", " WHERE id=?"),
		oltpSimple:         newTemplate("SELECT c FROM ", between),
		oltpSum:            newTemplate("SELECT SUM("+sum+") FROM ", between),
		oltpOrder:          newTemplate("SELECT c FROM ", between+" ORDER BY c"),
		oltpDistinct:       newTemplate("SELECT DISTINCT c FROM ", between+" ORDER BY c"),
		oltpIndexUpdate:    newTemplate("UPDATE ", " SET k=k+1 WHERE id=?"),
		oltpNonIndexUpdate: newTemplate("UPDATE ", " SET c=? WHERE id=?"),
		oltpDelete:         newTemplate("DELETE FROM ", " WHERE id=?"),
		oltpInsert:         newTemplate("INSERT INTO ", " (id, k, c, pad) VALUES (?, ?, ?, ?)"),
		oltpRandomPoints:   newTemplate("SELECT id, k, c, pad FROM ", " WHERE k IN ("+repeat("?", ", ", o.opts.RandomPoints)+")"),
		oltpRandomRanges:   newTemplate("SELECT count(k) FROM ", " WHERE "+repeat("k BETWEEN ? AND ?", " OR ", o.opts.NumberOfRanges)),
	}
}

func repeat(s, separator string, n int32) string {
	return strings.Join(slices.Repeat([]string{s}, int(n)), separator)
}

// transactional reports whether an engine has transactions, as far as engines without
// them are known.
func transactional(engine string) bool {
	return !slices.Contains([]string{"myisam", "aria", "memory", "heap", "csv", "archive", "blackhole", "mrg_myisam", "merge"},
		strings.ToLower(engine))
}

// lockTables is what stands for BEGIN with such an engine. It names all tables.
func (o *oltp) lockTables() string {
	locks := make([]string, o.opts.Tables)
	for i := range locks {
		locks[i] = o.table(i) + " WRITE"
	}
	return "LOCK TABLES " + strings.Join(locks, ", ")
}

func (o *oltp) Operations() []string { return []string{o.script.operation} }

func (o *oltp) Requirements() Requirements {
	r := Requirements{
		NoPrimaryKey: o.opts.Secondary && o.opts.Script != contract.OLTPBulkInsert, Sessions: 1,
		// Loading, checking, and loading again what was cut off need these anyway.
		Privileges: []string{"INSERT", "SELECT", "DELETE"}, LargestPacket: oltpPacket,
	}
	if slices.Contains(o.script.privileges, "UPDATE") {
		r.Privileges = append(r.Privileges, "UPDATE")
	}
	if o.shape(1).Index {
		r.Privileges = append(r.Privileges, "INDEX")
	}
	if strings.HasPrefix(o.begin, "LOCK TABLES") {
		r.Privileges = append(r.Privileges, "LOCK TABLES")
	}
	if o.opts.Engine != "" {
		r.Engines, r.EngineField = []string{o.opts.Engine}, oltpEngineField
		r.TableBytes = o.opts.TableSize * oltpRowBytes
	}
	if o.opts.Script != contract.OLTPBulkInsert { // has a table per client, see Prepare
		r.Tables = o.tables(int(o.opts.Tables))
	}
	if o.prepares() {
		r.Statements = len(o.prepared()) * int(o.opts.Tables)
		if o.begin != "" {
			r.Statements += 2
		}
	}
	return r
}

func (o *oltp) prepares() bool { return o.opts.Statements == contract.StatementsPrepared }

// prepared are the kinds of statement that a client prepares for each table.
func (o *oltp) prepared() []oltpKind {
	if o.opts.RangeSelects || !o.script.transaction {
		return o.script.statements
	}
	isRange := func(k oltpKind) bool { return k >= oltpSimple && k <= oltpDistinct }
	return slices.DeleteFunc(slices.Clone(o.script.statements), isRange)
}

// Load ends the load as the tool does where l has no stop rule.
func (o *oltp) Load(l contract.Load) contract.Load {
	switch {
	case l.EventsPerClient != 0 || l.Events != 0 || l.Duration != 0:
	case o.is05():
		l.Events = oltpEvents05
	default:
		l.Duration = contract.Duration(oltpDuration)
	}
	return l
}

func (o *oltp) Prepare(env *Env) error { return o.dataset(env).Prepare(env) }

// Verify has nothing to check: a count of the rows would read all of a large table.
func (o *oltp) Verify(*Env) (map[string]string, error) { return nil, nil }

// OnError has an event with an error of the list run again. A connection that is lost
// counts as one of the numbers by which the C library says so.
func (o *oltp) OnError(err error) Action {
	if o.ignores(err) {
		return Retry
	}
	return Fail
}

// clientLost are CR_SERVER_GONE_ERROR, CR_TCP_CONNECTION, CR_SERVER_LOST and
// CR_SERVER_LOST_EXTENDED.
var clientLost = []int32{2006, 2011, 2013, 2055}

func (o *oltp) ignores(err error) bool {
	var failure *contract.Failure
	var reconnect *reconnectError
	if errors.As(err, &failure) || errors.As(err, &reconnect) {
		return false
	}
	number := int32(errorNumber(err))
	return slices.ContainsFunc(o.opts.IgnoreErrors, func(n int32) bool {
		return n == number || number == 0 && slices.Contains(clientLost, n)
	})
}

// reconnectError is a connection that was lost, or due to be opened anew, and could not
// be. Waiting for the server is not a workload's business: the run ends.
type reconnectError struct{ err error }

func (e *reconnectError) Error() string { return fmt.Sprintf("reconnect: %v", e.err) }
func (e *reconnectError) Unwrap() error { return e.err }
