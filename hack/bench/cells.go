//go:build linux

package main

import (
	"context"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// cell is a load that both sides know.
type cell struct {
	name    string
	clients []int
	// contestants makes both sides.
	contestants func(ctx context.Context, b *bench, clients int) (ours, theirs contestant, err error)
	// bounds are what is to hold, by the number of clients; nil where nothing is said.
	bounds func(clients int) []bound
}

// contestant runs the load once.
type contestant func(ctx context.Context) (sample, error)

// sample is what one run gave, by the contestant's own clock and the kernel's accounts.
type sample struct {
	elapsed time.Duration
	events  int64
	cpu     time.Duration // user and system, of the whole process
	memory  int64         // the process's peak, in bytes
	p99     time.Duration // 0 where the contestant does not say
}

func (s sample) throughput() float64  { return float64(s.events) / s.elapsed.Seconds() }
func (s sample) cpuPerEvent() float64 { return s.cpu.Seconds() / float64(s.events) }

var sysbenchClients = []int{1, 8, 64, 256, 1024}

var cells = []*cell{
	{"point-select", sysbenchClients, oltp("oltp_point_select", contract.OLTPPointSelect), pointSelectBounds},
	{"read-write", sysbenchClients, oltp("oltp_read_write", contract.OLTPReadWrite), readWriteBounds},
	{"update-non-index", sysbenchClients, oltp("oltp_update_non_index", contract.OLTPUpdateNonIndex), nil},
	{"slap-insert", []int{1, 10, 30, 50, 100}, slap, slapBounds},
	{"open-loop", []int{64}, openLoop, openLoopBounds},
}

func cellNames() []string {
	var out []string
	for _, c := range cells {
		out = append(out, c.name)
	}
	return out
}

func pointSelectBounds(clients int) []bound {
	cpu := map[int]float64{1: 1, 8: 1, 64: 0.75, 256: 0.5, 1024: 0.35}
	var out []bound
	if most, ok := cpu[clients]; ok {
		out = append(out, bound{cpuRatio, most, false})
	}
	return append(out, throughputBounds(clients, 0)...)
}

func readWriteBounds(clients int) []bound { return throughputBounds(clients, 0.05) }

func throughputBounds(clients int, slack float64) []bound {
	least, ok := map[int]float64{1: 0.97, 8: 1, 64: 1, 256: 1.15}[clients]
	if !ok {
		return nil
	}
	return []bound{{throughputRatio, least - slack, true}}
}

// slapBounds speaks of throughput: the number of queries is given, so it is the inverse
// of the elapsed time.
func slapBounds(int) []bound { return []bound{{throughputRatio, 1, true}} }

func openLoopBounds(int) []bound { return []bound{{p99Ratio, 1.1, false}} }

func oltp(theirs, ours string) func(context.Context, *bench, int) (contestant, contestant, error) {
	return func(_ context.Context, b *bench, clients int) (contestant, contestant, error) {
		tool, err := b.sysbench(theirs, clients, 0)
		if err != nil {
			return nil, nil, err
		}
		load := contract.Load{Clients: int32(clients), Duration: contract.Duration(b.seconds)}
		return b.runner(oltpWorkload(ours), load, contract.PrepareNever), tool, nil
	}
}

// openLoop has both sides send half of what the server can do, at random times.
func openLoop(ctx context.Context, b *bench, clients int) (contestant, contestant, error) {
	tool, err := b.sysbench("oltp_point_select", clients, 0)
	if err != nil {
		return nil, nil, err
	}
	most, err := tool(ctx)
	if err != nil {
		return nil, nil, err
	}
	rate := int64(most.throughput() / 2)
	if tool, err = b.sysbench("oltp_point_select", clients, rate); err != nil {
		return nil, nil, err
	}
	load := contract.Load{Clients: int32(clients), Duration: contract.Duration(b.seconds), Rate: rate}
	return b.runner(oltpWorkload(contract.OLTPPointSelect), load, contract.PrepareNever), tool, nil
}

// slapQueries is the number of queries of a run over all clients, where none is given
// for each.
const slapQueries = 20000

func slap(_ context.Context, b *bench, clients int) (contestant, contestant, error) {
	each := b.queries
	if each == 0 {
		each = max(slapQueries/clients, 1)
	}
	tool, err := b.slap(clients, each)
	if err != nil {
		return nil, nil, err
	}
	workload := contract.Workload{Slap: &contract.Slap{
		LoadType: contract.SlapWrite, Engine: "InnoDB", AutoIncrement: true, IntColumns: 1, CharColumns: 1,
		UniqueQueries: 10, UniqueWrites: 10, PreloadRows: 100, ExactCounts: true, TimingIncludesConnect: true,
	}}
	load := contract.Load{Clients: int32(clients), EventsPerClient: int64(each)}
	return b.runner(workload, load, contract.PreparePerRun), tool, nil
}
