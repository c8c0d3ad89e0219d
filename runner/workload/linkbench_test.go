package workload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"dbbench.dev/operator/runner/contract"
)

func linkBenchOptions() contract.LinkBench {
	seed := int64(1)
	return contract.LinkBench{
		StartID: 1, MaxID: 1001, LinkTypes: 2, Engine: "InnoDB", Partitions: 16, Loaders: 10, LoadBatch: 1024, LinkDataSize: 8,
		NodeDataSize: 128, MaxFailedRequests: 100, WriteUncorrelatedBug: true, LeftoverBug: true, Seed: &seed,
		Mix: contract.LinkBenchMix{AddLink: "8.9886601", DeleteLink: "2.9907664", UpdateLink: "8.0122125", CountLink: "4.8863567",
			GetLink: "0.5261142", GetLinkList: "50.7119145", GetNode: "12.9326683", AddNode: "2.5732789", UpdateNode: "7.366437",
			DeleteNode: "1.0115914"},
	}
}

// only is the mix of one operation.
func only(operation int) contract.LinkBenchMix {
	shares := [linkBenchOperations]string{"0", "0", "0", "0", "0", "0", "0", "0", "0", "0"}
	shares[operation] = "100"
	return contract.LinkBenchMix{AddLink: shares[linkBenchAddLink], DeleteLink: shares[linkBenchDeleteLink],
		UpdateLink: shares[linkBenchUpdateLink], CountLink: shares[linkBenchCountLink], GetLink: shares[linkBenchGetLink],
		GetLinkList: shares[linkBenchGetLinkList], AddNode: shares[linkBenchAddNode], UpdateNode: shares[linkBenchUpdateNode],
		DeleteNode: shares[linkBenchDeleteNode], GetNode: shares[linkBenchGetNode]}
}

// graphTape is a tape that says how many rows a statement changed, and has rows.
type graphTape struct {
	*tape
	name string
	// affected is by the beginning of the text.
	affected map[string]int64
	// found are the rows of all queries with a receiver.
	found []Row
	// broken is the error of Reconnect.
	broken error
}

func (s *graphTape) Exec(q string) (Result, error) {
	for begin, n := range s.affected {
		if strings.HasPrefix(q, begin) {
			return Result{Affected: n}, s.say(s.name, q)
		}
	}
	return Result{}, s.say(s.name, q)
}

func (s *graphTape) Query(q string, row RowFunc) error {
	if err := s.say(s.name, q); err != nil || row == nil {
		return err
	}
	for _, r := range s.found {
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *graphTape) Reconnect() error {
	if err := s.say(s.name, "-- reconnect"); err != nil {
		return err
	}
	return s.broken
}

// newGraphClient is a client whose two sessions write on one tape.
func newGraphClient(t *testing.T, opts contract.LinkBench) (w *linkBench, c *linkBenchClient, ro, rw *graphTape) {
	t.Helper()
	w = newLinkBench(opts)
	c = w.NewClient(0, 1).(*linkBenchClient)
	all := &tape{}
	ro, rw = &graphTape{tape: all, name: "ro: "}, &graphTape{tape: all, name: "rw: "}
	if err := c.Open([]Session{ro, rw}); err != nil {
		t.Fatal(err)
	}
	return w, c, ro, rw
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
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
}

// TestLinkBenchTexts holds what each operation says, in all its cases, against a golden
// file.
func TestLinkBenchTexts(t *testing.T) {
	link := func(n int64) map[string]int64 { return map[string]int64{"INSERT INTO linktable": n} }
	visible := func(n int64) []Row { return []Row{{n}} }
	var out []string
	for _, tt := range []struct {
		name      string
		operation int
		affected  map[string]int64
		found     []Row
	}{
		{"add a link that is new", linkBenchAddLink, link(linkInserted), nil},
		{"add a link that was hidden", linkBenchAddLink, link(linkShown), nil},
		{"add a link that is there", linkBenchAddLink, link(0), nil},
		{"update a link that is there", linkBenchUpdateLink, link(0), nil},
		{"update a link that is not", linkBenchUpdateLink, link(linkInserted), nil},
		{"delete a link", linkBenchDeleteLink, nil, visible(1)},
		{"delete a link that is hidden", linkBenchDeleteLink, nil, visible(0)},
		{"delete a link that is not there", linkBenchDeleteLink, nil, nil},
		{"count links", linkBenchCountLink, nil, nil},
		{"get links", linkBenchGetLink, nil, nil},
		{"list links", linkBenchGetLinkList, nil, nil},
		{"get a node", linkBenchGetNode, nil, nil},
		{"add a node", linkBenchAddNode, nil, nil},
		{"update a node", linkBenchUpdateNode, nil, nil},
		{"delete a node", linkBenchDeleteNode, nil, nil},
	} {
		opts := linkBenchOptions()
		opts.Mix, opts.NodeDataSize = only(tt.operation), 8
		w, c, ro, rw := newGraphClient(t, opts)
		rw.affected, ro.found, rw.found = tt.affected, tt.found, tt.found
		operation, err := c.Event()
		if err != nil || operation != tt.operation {
			t.Fatalf("%s: operation %d, error %v", tt.name, operation, err)
		}
		out = append(out, "-- "+tt.name+": "+w.Operations()[operation])
		out = append(out, rw.said...)
	}
	golden(t, "linkbench", strings.Join(out, "\n")+"\n")
}

// TestLinkBenchLoadTexts holds all that a small load says against a golden file.
func TestLinkBenchLoadTexts(t *testing.T) {
	opts := linkBenchOptions()
	opts.StartID, opts.MaxID, opts.NLinksMax, opts.NodeDataSize, opts.LoadBatch = 5, 9, 3, 4, 3
	said := loadGraph(t, opts)
	golden(t, "linkbench-load", strings.Join(said, "\n")+"\n")
	opts.Partitions = 0
	for _, text := range loadGraph(t, opts) {
		if strings.Contains(text, "PARTITION") {
			t.Errorf("without partitions: %s", text)
		}
	}
}

// TestLinkBenchWithoutPartitions: MySQL's MyISAM, for one, has none.
func TestLinkBenchWithoutPartitions(t *testing.T) {
	s := &tape{answer: func(text string) error {
		if strings.HasPrefix(text, "ALTER") {
			return &mysql.MySQLError{Number: 1178}
		}
		return nil
	}}
	err := newLinkBench(linkBenchOptions()).Prepare(&Env{Session: s, Tables: s, Mode: contract.PreparePerRun})
	var failure *contract.Failure
	if !errors.As(err, &failure) || failure.MySQLError != 1178 || !strings.Contains(failure.Hint, "partitions to 0") {
		t.Errorf("error %v", err)
	}
}

func loadGraph(t *testing.T, opts contract.LinkBench) []string {
	t.Helper()
	s := &tape{}
	if err := newLinkBench(opts).Prepare(&Env{Session: s, Tables: s, MariaDB: true, Mode: contract.PreparePerRun, Clients: 2}); err != nil {
		t.Fatal(err)
	}
	return s.said
}

// TestLinkBenchLoadIsWhole counts the rows of all statements: each node, link and count
// once, batches as long as they may be, and none that is empty.
func TestLinkBenchLoadIsWhole(t *testing.T) {
	for _, batch := range []int32{1, 7, 1024, 2048} { // a chunk of 2048 nodes leaves nothing for a last batch of some
		opts := linkBenchOptions()
		opts.MaxID, opts.LoadBatch, opts.NLinksMax = 4097, batch, 30_000 // one node is loaded in pieces
		w := newLinkBench(opts)
		links, counts := w.expected()
		rows := map[string]int64{}
		seen := map[string]bool{}
		for _, text := range loadGraph(t, opts) {
			head, values, ok := strings.Cut(text, " VALUES ")
			if !ok || strings.Contains(head, datasetTable) {
				continue
			}
			values, _, _ = strings.Cut(values, " ON DUPLICATE KEY")
			list := strings.Split(values, "), (")
			if len(list) > int(batch) || values == "" {
				t.Fatalf("%d rows: %.100s", len(list), text)
			}
			for _, row := range list {
				fields := strings.SplitN(strings.TrimPrefix(row, "("), ", ", 4)
				key := head + fields[0]
				switch {
				case strings.Contains(head, linkTable):
					key += " " + fields[1] + " " + fields[2]
				case strings.Contains(head, countTable):
					key += " " + fields[1]
				}
				if seen[key] {
					t.Fatalf("twice: %s", row)
				}
				seen[key] = true
			}
			rows[strings.Fields(head)[2]] += int64(len(list))
		}
		if want := map[string]int64{linkTable: links, countTable: counts, nodeTable: 4096}; !reflect.DeepEqual(rows, want) {
			t.Errorf("batches of %d: rows %v, want %v", batch, rows, want)
		}
	}
}

func TestLinkBenchPacketsAreBounded(t *testing.T) {
	opts := linkBenchOptions()
	opts.MaxID, opts.NLinksMax, opts.NodeDataSize, opts.LoadBatch = 101, 1, contract.MaxNodeData, 65536
	limit := newLinkBench(opts).Requirements().LargestPacket
	longest := 0
	for _, text := range loadGraph(t, opts) {
		longest = max(longest, len(text))
	}
	if longest > limit || longest < contract.MaxNodeData {
		t.Errorf("a statement has %d bytes, the limit is %d", longest, limit)
	}
}

// TestLinkBenchMix draws a million operations.
func TestLinkBenchMix(t *testing.T) {
	const draws = 1_000_000
	c := newLinkBench(linkBenchOptions()).NewClient(0, 1).(*linkBenchClient)
	var counts [linkBenchOperations]float64
	for range draws {
		counts[c.drawOperation()]++
	}
	want := [linkBenchOperations]float64{8.9886601, 2.9907664, 8.0122125, 4.8863567, 0.5261142, 50.7119145, 2.5732789, 7.366437, 1.0115914, 12.9326683}
	for operation, percent := range want {
		got, n := counts[operation], draws*percent/100
		if math.Abs(got-n) > 4*math.Sqrt(n) || math.Abs(100*got/draws-percent) > 1 {
			t.Errorf("%s is %.4f %% of the operations, want %v %%", newLinkBench(linkBenchOptions()).Operations()[operation], 100*got/draws, percent)
		}
	}
}

// TestLinkBenchFindsWhatWasLoaded: how often the link that an operation asks for was
// loaded, among nodes that have some.
func TestLinkBenchFindsWhatWasLoaded(t *testing.T) {
	const draws = 20_000
	for operation, want := range map[int]float64{linkBenchAddLink: existsToAdd, linkBenchUpdateLink: existsToUpdate, linkBenchDeleteLink: existsToDelete} {
		opts := linkBenchOptions()
		opts.MaxID, opts.Mix = 100_001, only(operation)
		c := newLinkBench(opts).NewClient(0, 1).(*linkBenchClient)
		n, exist := 0.0, 0.0
		for range draws {
			c.draw()
			links := c.graph.ofType(c.graph.degree(c.id1), c.linkType)
			if links < 10 {
				continue
			}
			n++
			if c.id2 < c.id1 {
				t.Fatalf("the link %d to %d", c.id1, c.id2)
			}
			if c.id2 < c.id1+links {
				exist++
			}
		}
		if n < 100 || math.Abs(exist/n-want) > 0.08 {
			t.Errorf("%d: %.0f of %.0f links were loaded, want %.2f", operation, exist, n, want)
		}
	}
}

// TestLinkBenchUncorrelated: how often a node with very many links is asked for.
func TestLinkBenchUncorrelated(t *testing.T) {
	const draws = 200_000
	share := func(bug bool, operation int) float64 {
		opts := linkBenchOptions()
		opts.MaxID, opts.Mix, opts.WriteUncorrelatedBug = 100_001, only(operation), bug
		w := newLinkBench(opts)
		c := w.NewClient(0, 1).(*linkBenchClient)
		hub, hits := w.graph.start+w.graph.ranks.place(0), 0
		for range draws {
			if c.draw(); c.id1 == hub {
				hits++
			}
		}
		return float64(hits) / draws
	}
	first := func(shape float64) float64 { return 1 / harmonic(100_000, shape) }
	for _, tt := range []struct {
		name      string
		bug       bool
		operation int
		want      float64
	}{
		{"reads", true, linkBenchCountLink, 0.005 * first(0.8)},
		{"writes", true, linkBenchUpdateLink, 0.005 * first(0.741)},
		{"writes as meant", false, linkBenchUpdateLink, 0.05 * first(0.741)},
	} {
		// The other accesses hit it by chance, seldom.
		if got := share(tt.bug, tt.operation); math.Abs(got-tt.want) > 0.3*tt.want+0.0001 {
			t.Errorf("%s: the node with the most links has a share of %.5f, want %.5f", tt.name, got, tt.want)
		}
	}
}

func TestLinkBenchGetsDistinctLinks(t *testing.T) {
	opts := linkBenchOptions()
	opts.Mix = only(linkBenchGetLink)
	_, c, ro, _ := newGraphClient(t, opts)
	ro.found = []Row{{}} // one of each request
	most, requests := 0, int64(0)
	for range 5000 {
		if _, err := c.Event(); err != nil {
			t.Fatal(err)
		}
		seen := map[int64]bool{}
		for _, id2 := range c.id2s {
			if seen[id2] || id2 < c.id1 {
				t.Fatalf("links %v of %d", c.id2s, c.id1)
			}
			seen[id2] = true
		}
		most, requests = max(most, len(c.id2s)), requests+int64(len(c.id2s))
	}
	if most < 8 || c.found != 5000 || c.notFound != requests-5000 {
		t.Errorf("at most %d links, found %d, not found %d of %d", most, c.found, c.notFound, requests)
	}
}

// TestLinkBenchRunsTheSameAgain: what a deadlock has undone is done again, and not
// something else.
func TestLinkBenchRunsTheSameAgain(t *testing.T) {
	for _, number := range []uint16{erLockDeadlock, erLockWaitTimeout} {
		w, c, _, rw := newGraphClient(t, linkBenchOptions())
		for range 300 {
			rw.said = nil
			failed := false
			rw.answer = func(text string) error {
				if !failed && text != "ROLLBACK" {
					failed = true
					return &mysql.MySQLError{Number: number}
				}
				return nil
			}
			operation, err := c.Event()
			if w.OnError(err) != Retry {
				t.Fatalf("error %v", err)
			}
			again, err := c.Event()
			if err != nil || again != operation {
				t.Fatalf("operation %d, and then %d: %v", operation, again, err)
			}
			if said := rw.said; len(said) < 3 || said[1] != "rw: ROLLBACK" || said[0] != said[2] {
				t.Fatalf("said %q", said)
			}
		}
	}
}

func TestLinkBenchGivesUp(t *testing.T) {
	opts := linkBenchOptions()
	opts.MaxFailedRequests = 2
	w, c, _, rw := newGraphClient(t, opts)
	defect := &mysql.MySQLError{Number: 1146}
	rw.answer = func(text string) error {
		if strings.Contains(text, "reconnect") || strings.Contains(text, "autocommit") {
			return nil
		}
		return defect
	}
	for i := range 3 {
		rw.said = nil
		_, err := c.Event()
		if got := strings.Join(rw.said[1:], "; "); i < 2 && got != "ro: -- reconnect; rw: -- reconnect; rw: SET autocommit = 0" {
			t.Errorf("after a failure: %s", got)
		}
		if !errors.Is(err, defect) || w.OnError(err) != Skip {
			t.Errorf("failure %d: %v, action %d", i, err, w.OnError(err))
		}
	}
	if _, err := c.Event(); !errors.Is(err, ErrDone) {
		t.Errorf("after too many failures: %v, want the client to be done", err)
	}
	var failure *contract.Failure
	if _, err := w.Report(); !errors.As(err, &failure) || failure.MySQLError != 1146 || !strings.Contains(failure.Message, "all clients stopped after 3 failed") {
		t.Errorf("report of a run without clients: %v", err)
	}
	w.NewClient(1, 2)
	if warnings, err := w.Report(); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "1 of 2 clients stopped after 3 failed") {
		t.Errorf("report: %q, %v", warnings, err)
	}
}

func TestLinkBenchNeverGivesUp(t *testing.T) {
	opts := linkBenchOptions()
	opts.MaxFailedRequests = -1
	w, c, _, rw := newGraphClient(t, opts)
	rw.answer = func(text string) error {
		if strings.Contains(text, "reconnect") || strings.Contains(text, "autocommit") {
			return nil
		}
		return io.ErrUnexpectedEOF
	}
	for range 200 {
		if _, err := c.Event(); w.OnError(err) != Skip {
			t.Fatalf("error %v", err)
		}
	}
	rw.broken = io.EOF
	if _, err := c.Event(); w.OnError(err) != Fail || !errors.Is(err, io.EOF) {
		t.Errorf("with a server that is gone: %v", err)
	}
	if w.OnError(&contract.Failure{}) != Fail {
		t.Error("a failure of the run is passed over")
	}
}

// events has a client do so many.
func events(t *testing.T, c Client, n int) {
	t.Helper()
	for range n {
		if _, err := c.Event(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLinkBenchHistory(t *testing.T) {
	opts := linkBenchOptions()
	opts.Mix = only(linkBenchGetLinkList)
	_, c, ro, _ := newGraphClient(t, opts)
	ro.found = make([]Row, listLimit)
	for i := range ro.found {
		ro.found[i] = Row{int64(0), int64(0), int64(0), int64(1), []byte("x"), int64(5_000_000 - i), int64(0)}
	}
	events(t, c, 2000)
	if c.historyQueries == 0 || len(c.history) == 0 {
		t.Fatalf("%d of %d lists go on", c.historyQueries, len(c.history))
	}
	pairs := map[linkList]bool{}
	for _, l := range c.history {
		if l.time != 5_000_000-listLimit+1 || pairs[l] {
			t.Fatalf("list %+v, twice: %v", l, pairs[l])
		}
		pairs[l] = true
	}
	queries := slices.DeleteFunc(slices.Clone(ro.said), func(text string) bool { return !strings.Contains(text, "LIMIT 1,10000") })
	if int64(len(queries)) != c.historyQueries || !strings.Contains(queries[0], "AND time >= 0 AND time <= 4990001 ") {
		t.Errorf("%d queries of %d: %v", len(queries), c.historyQueries, queries)
	}

	// Lists that have come to their end are forgotten.
	ro.found = nil
	before, queried := len(c.history), c.historyQueries
	events(t, c, 2000)
	if n := int(c.historyQueries - queried); n == 0 || len(c.history) != before-n {
		t.Errorf("%d lists, of which %d were asked for to their end, leave %d", before, n, len(c.history))
	}
}

func TestLinkBenchHistoryIsBounded(t *testing.T) {
	_, c, _, _ := newGraphClient(t, linkBenchOptions())
	c.rows, c.historyAt = listLimit, -1
	for id := range int64(3 * historyLimit) {
		c.remember(linkList{id1: id})
	}
	if len(c.history) != historyLimit {
		t.Errorf("%d lists are remembered", len(c.history))
	}
}

func TestLinkBenchEventDoesNotAllocate(t *testing.T) {
	for operation := range linkBenchOperations {
		opts := linkBenchOptions()
		opts.Mix = only(operation)
		w := newLinkBench(opts)
		c := w.NewClient(0, 1).(*linkBenchClient)
		mute := &graphTape{tape: &tape{mute: true}, found: []Row{{int64(1)}}}
		if err := c.Open([]Session{mute, mute}); err != nil {
			t.Fatal(err)
		}
		c.data, c.text.bytes, c.id2s = make([]byte, 1<<20), make([]byte, 3<<20), make([]int64, mostLinks) // as long as they become
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := c.Event(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per event", w.Operations()[operation], n)
		}
	}
}

func TestLinkBenchLoad(t *testing.T) {
	w := newLinkBench(linkBenchOptions())
	if got, want := w.Load(contract.Load{Clients: 100}), (contract.Load{Clients: 100, EventsPerClient: 500000, Duration: contract.Duration(100000 * time.Second)}); !reflect.DeepEqual(got, want) {
		t.Errorf("load %+v, want %+v", got, want)
	}
	asked := contract.Load{Clients: 3, Events: 7}
	if got := w.Load(asked); !reflect.DeepEqual(got, asked) {
		t.Errorf("load %+v, want %+v", got, asked)
	}
}

func TestLinkBenchStops(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	s := &tape{}
	env := &Env{Session: s, Tables: s, Mode: contract.PreparePerRun, Stopped: stopped}
	if err := newLinkBench(linkBenchOptions()).Prepare(env); !errors.Is(err, errStopped) {
		t.Errorf("error %v", err)
	}
	if _, err := newLinkBench(linkBenchOptions()).Verify(env); err == nil {
		t.Error("counts were checked after the end")
	}
}

// TestLinkBenchVerifyIsBounded: a large graph is checked from its first node on.
func TestLinkBenchVerifyIsBounded(t *testing.T) {
	for _, tt := range []struct {
		nodes       int64
		least, most int64
	}{{1000, 1000, 1000}, {10_000_000, 100_000, 1_000_000}} {
		w := graphOf(tt.nodes)
		s := &tape{}
		findings, err := w.Verify(&Env{Session: s, Tables: s})
		if err != nil {
			t.Fatal(err)
		}
		var end, links int64
		for _, text := range s.said {
			_, between, _ := strings.Cut(text, "BETWEEN ")
			var first, last int64
			if n, _ := fmt.Sscanf(between, "%d AND %d", &first, &last); n != 2 || first != end+1 || last < first {
				t.Fatalf("after %d: %s", end, text)
			}
			end = last
		}
		for id := int64(1); id <= end; id++ {
			links += w.graph.loaded(w.graph.degree(id))
		}
		if end < tt.least || end > tt.most || links > 2*verifyLinks || findings["nodesChecked"] != fmt.Sprint(end) {
			t.Errorf("of %d nodes 1 to %d are checked, with %d links: %v", tt.nodes, end, links, findings)
		}
	}
}
