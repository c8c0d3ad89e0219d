package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"dbbench.dev/operator/runner/contract"
)

const linkBenchEngineField = "spec.workload.linkbench.engine"

// Where neither requests nor time end a load, the tool ends it itself.
const (
	linkBenchRequests = 500000 // of a client
	linkBenchMaxTime  = 100000 * time.Second
)

// linkBenchEpoch is the time in milliseconds at which the load of all graphs ends and
// all runs begin: 2026-01-01 UTC. Times order links by their age, and are used for
// nothing else; with one that is fixed the same seed gives the same data.
const linkBenchEpoch = 1767225600000

// The kinds of event of linkbench, in the order in which the tool draws them.
const (
	linkBenchAddLink = iota
	linkBenchDeleteLink
	linkBenchUpdateLink
	linkBenchCountLink
	linkBenchGetLink
	linkBenchGetLinkList
	linkBenchAddNode
	linkBenchUpdateNode
	linkBenchDeleteNode
	linkBenchGetNode
	linkBenchOperations
)

// Chances that a link that is asked for was loaded.
const (
	existsToAdd    = 0.05
	existsToUpdate = 0.9
	existsToDelete = 0.9
	existsToGet    = 0.5
)

// linkBench is Facebook's LinkBench: a graph of nodes and of typed links between them,
// each link stored with the node that it goes out of, and a count of the visible links
// of each node and type, which is kept with every change of a link. An event is one
// operation, with all its retries.
type linkBench struct {
	opts  contract.LinkBench
	seed  uint64
	graph *linkGraph
	// limits are the shares of the operations, each added to those before it.
	limits [linkBenchOperations]float64

	reads, writes          blendedAccess
	nodeReads, nodeUpdates access
	linkData, nodeData     *dataGenerator

	clients []*linkBenchClient
}

func newLinkBench(opts contract.LinkBench) *linkBench {
	w := &linkBench{opts: opts, seed: rand.Uint64(), graph: newLinkGraph(&opts)}
	if opts.Seed != nil {
		w.seed = uint64(*opts.Seed)
	}
	w.limits = linkBenchLimits(opts.Mix)
	w.reads = w.blended(0.8, 0.8, 0.995)
	w.writes = w.blended(0.741, 0.741, 0.95)
	if opts.WriteUncorrelatedBug {
		w.writes = w.blended(0.741, 0.8, 0.995) // what reads have
	}
	w.nodeReads = w.graph.access(0.625, linkBenchNodeSeed)
	w.nodeUpdates = w.graph.access(0.606, linkBenchNodeSeed)
	rng := rand.New(rand.NewPCG(w.seed, 0))
	w.linkData = newDataGenerator(rng, opts.LinkDataSize, contract.MaxLinkData, 32, 100, 0.225)
	w.nodeData = newDataGenerator(rng, opts.NodeDataSize, contract.MaxNodeData, 50, 220, 0.63)
	return w
}

// linkBenchLimits adds up the shares, which were validated.
func linkBenchLimits(m contract.LinkBenchMix) (limits [linkBenchOperations]float64) {
	var sum float64
	for i, share := range [linkBenchOperations]string{
		m.AddLink, m.DeleteLink, m.UpdateLink, m.CountLink, m.GetLink, m.GetLinkList, m.AddNode, m.UpdateNode, m.DeleteNode, m.GetNode,
	} {
		percent, _ := strconv.ParseFloat(share, 64)
		sum += percent
		limits[i] = sum
	}
	return limits
}

func (w *linkBench) blended(shape, uncorrelatedShape, uncorrelatedShare float64) blendedAccess {
	return blendedAccess{w.graph.access(shape, linkBenchSeed), w.graph.access(uncorrelatedShape, linkBenchUncorrelatedSeed), uncorrelatedShare}
}

// Operations are called as the tool does.
func (w *linkBench) Operations() []string {
	return []string{"ADD_LINK", "DELETE_LINK", "UPDATE_LINK", "COUNT_LINK", "MULTIGET_LINK", "GET_LINKS_LIST",
		"ADD_NODE", "UPDATE_NODE", "DELETE_NODE", "GET_NODE"}
}

func (w *linkBench) Requirements() Requirements {
	r := Requirements{
		Tables: []string{linkTable, countTable, nodeTable}, Engines: []string{w.opts.Engine}, EngineField: linkBenchEngineField,
		Privileges: []string{"INSERT", "SELECT", "UPDATE", "DELETE"}, Sessions: 2, MultiStatements: true,
		LargestPacket: linkBenchPacket + linkBenchLongestRow,
	}
	if w.opts.Partitions > 0 {
		r.Privileges = append(r.Privileges, "ALTER")
	}
	return r
}

// Load ends the load as the tool does where l has no stop rule.
func (w *linkBench) Load(l contract.Load) contract.Load {
	if l.EventsPerClient == 0 && l.Events == 0 && l.Duration == 0 {
		l.EventsPerClient, l.Duration = linkBenchRequests, contract.Duration(linkBenchMaxTime)
	}
	return l
}

func (w *linkBench) Prepare(env *Env) error { return w.dataset().Prepare(env) }

func (w *linkBench) NewClient(i, _ int) Client {
	c := &linkBenchClient{linkBench: w, rng: rand.New(rand.NewPCG(w.seed, uint64(i)+1)), now: linkBenchEpoch}
	c.listed, c.counted, c.looked = c.noteListed, c.noteFound, c.noteVisibility
	w.clients = append(w.clients, c)
	return c
}

// OnError has an operation run again after a deadlock or a lock that was held for too
// long, as often as it takes. One that failed for another reason is passed over.
func (w *linkBench) OnError(err error) Action {
	var failure *contract.Failure
	var reconnect *reconnectError
	switch {
	case errors.As(err, &failure), errors.As(err, &reconnect):
		return Fail
	case lockFailed(err):
		return Retry
	}
	return Skip
}

func lockFailed(err error) bool {
	n := errorNumber(err)
	return n == erLockDeadlock || n == erLockWaitTimeout
}

// Report says how many clients have seen too many failures. As the tool's requesters
// they stop, and the others go on; where none is left, the run has failed.
func (w *linkBench) Report() (warnings []string, err error) {
	var stopped int
	var last error
	for _, c := range w.clients {
		if c.gaveUp() {
			stopped, last = stopped+1, c.lastFailure
		}
	}
	const hint = "find out why, or raise spec.workload.linkbench.maxFailedRequests; with -1 the clients go on whatever fails"
	switch {
	case stopped == 0:
		return nil, nil
	case stopped == len(w.clients):
		return nil, errors.Join(&contract.Failure{Class: contract.ClassWorkloadFailed, MySQLError: errorNumber(last), Hint: hint,
			Message: fmt.Sprintf("all clients stopped after %d failed operations each; the last: %v", w.opts.MaxFailedRequests+1, last)}, last)
	}
	return []string{fmt.Sprintf("%d of %d clients stopped after %d failed operations each (maxFailedRequests), and the load went on without them; one of the last: %v",
		stopped, len(w.clients), w.opts.MaxFailedRequests+1, last)}, nil
}

// verifyLinks bounds what Verify reads: some seconds' worth of links.
const verifyLinks = 2_000_000

// Verify holds the counts against the links. A graph with more links than verifyLinks
// is checked in part, from its first node on: ids say nothing about how many links a
// node has or how often it is asked for, so that these nodes stand for all.
func (w *linkBench) Verify(env *Env) (map[string]string, error) {
	var checked, mismatches, visible int64
	var budget int64 = verifyLinks
	for checked < w.graph.nodes {
		first := w.graph.start + checked
		last, links := w.stretch(first)
		if checked > 0 && links > budget {
			break
		}
		select {
		case <-env.Stopped:
			return nil, errors.New("stopped while the counts were checked")
		default:
		}
		m, v, err := countMismatches(env.Session, first, last)
		if err != nil {
			return nil, fmt.Errorf("check the counts: %w", err)
		}
		mismatches, visible, checked, budget = mismatches+m, visible+v, last-w.graph.start+1, budget-links
	}
	findings := map[string]string{
		"nodes": strconv.FormatInt(w.graph.nodes, 10), "nodesChecked": strconv.FormatInt(checked, 10),
		"countMismatches": strconv.FormatInt(mismatches, 10), "visibleLinks": strconv.FormatInt(visible, 10),
	}
	w.addRequests(findings)
	return findings, nil
}

// verifyStretch is how many links and nodes are checked with one statement.
const verifyStretch = 100_000

// stretch is the last of the nodes from first on that are checked together, and how
// many links they were loaded with.
func (w *linkBench) stretch(first int64) (last, links int64) {
	end := min(first+verifyStretch, w.graph.start+w.graph.nodes)
	for last = first; ; last++ {
		links += w.graph.loaded(w.graph.degree(last))
		if links >= verifyStretch || last+1 == end {
			return last, links
		}
	}
}

// countMismatches counts the pairs of a node and a type whose count is not the number
// of their visible links, and those links.
func countMismatches(s Session, first, last int64) (mismatches, visible int64, err error) {
	between := fmt.Sprintf("BETWEEN %d AND %d", first, last)
	err = s.Query("SELECT COALESCE(SUM(counted <> visible), 0), COALESCE(SUM(visible), 0) FROM"+
		" (SELECT id, link_type, SUM(counted) AS counted, SUM(visible) AS visible FROM"+
		" (SELECT id, link_type, count AS counted, 0 AS visible FROM counttable WHERE id "+between+
		" UNION ALL SELECT id1, link_type, 0, COUNT(*) FROM linktable WHERE id1 "+between+
		" AND visibility = 1 GROUP BY id1, link_type) AS sides GROUP BY id, link_type) AS pairs",
		func(row Row) error {
			mismatches, _ = row.Int(0)
			visible, _ = row.Int(1)
			return nil
		})
	return mismatches, visible, err
}

// addRequests adds what the clients found, in the warm-up too.
func (w *linkBench) addRequests(findings map[string]string) {
	var found, notFound, lists, history int64
	for _, c := range w.clients {
		found, notFound, lists, history = found+c.found, notFound+c.notFound, lists+c.rowsListed, history+c.historyQueries
	}
	findings["linksFound"] = strconv.FormatInt(found, 10)
	findings["linksNotFound"] = strconv.FormatInt(notFound, 10)
	findings["linksListed"] = strconv.FormatInt(lists, 10)
	findings["historyQueries"] = strconv.FormatInt(history, 10)
}
