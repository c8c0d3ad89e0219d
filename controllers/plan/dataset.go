package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dbbench.dev/operator/api/v1alpha1"
)

// findDatasets names the dataset of each point, in the order in which they appear.
func findDatasets(points []point) {
	names := map[string]string{}
	for i, p := range points {
		shape := shapeOf(p.workload, p.load)
		if names[shape] == "" {
			names[shape] = fmt.Sprintf("d%04d", len(names)+1)
		}
		points[i].dataset = names[shape]
	}
}

// groupByDataset keeps the order of the points of a dataset, and that in which the
// datasets first appear.
func groupByDataset(points []point) [][]point {
	var groups [][]point
	for _, p := range points {
		i := slices.IndexFunc(groups, func(g []point) bool { return g[0].dataset == p.dataset })
		if i < 0 {
			groups = append(groups, []point{p})
			continue
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// shapeOf is all that decides how the data of a point looks before its runs.
//
// It orders and groups runs, no more: whether data can be used again, the runner finds
// out by itself. A difference between the two costs a load and never a result.
func shapeOf(w v1alpha1.Workload, l v1alpha1.Load) string {
	var shape any
	switch {
	case w.OLTP != nil:
		shape = oltpShape(*w.OLTP, l.Clients)
	case w.LinkBench != nil:
		shape = linkBenchShape(*w.LinkBench)
	case w.Payload != nil:
		shape = payloadShape(*w.Payload, l.Clients)
	case w.SQL != nil:
		shape = w.SQL.Setup
	}
	text, err := json.Marshal(shape)
	if err != nil {
		return err.Error() // what admission has let pass is JSON
	}
	return string(text)
}

// oltpShape keeps of oltp what the tables and their rows depend on.
func oltpShape(o v1alpha1.OLTP, clients int32) any {
	layout := struct {
		Tables int32
		// Bulk tables are empty, one for each client; Single is the one table of the random
		// selects of sysbench 0.5; Empty tables are for clients that make the ids.
		Bulk, Single, Empty bool
		OLTP                v1alpha1.OLTP
	}{
		Tables: o.Tables,
		Bulk:   o.Script == "BulkInsert",
		Single: o.Compat == "sysbench-0.5" && (o.Script == "RandomPoints" || o.Script == "RandomRanges"),
		Empty:  o.Script == "Insert" && o.AutoIncrement != nil && !*o.AutoIncrement,
		OLTP: v1alpha1.OLTP{
			Compat: o.Compat, TableSize: o.TableSize, BigIntIDs: o.BigIntIDs, Engine: lower(o.Engine), CreateTableOptions: o.CreateTableOptions,
			AutoIncrement: o.AutoIncrement, Secondary: o.Secondary, CreateSecondary: o.CreateSecondary, Distribution: o.Distribution, Seed: o.Seed,
		},
	}
	if layout.Bulk {
		layout.Tables, layout.OLTP.TableSize = clients, 0
	}
	return layout
}

func linkBenchShape(l v1alpha1.LinkBench) any {
	return v1alpha1.LinkBench{
		StartID: l.StartID, MaxID: l.MaxID, LinkTypes: l.LinkTypes, NLinksMax: l.NLinksMax, Engine: lower(l.Engine), Partitions: l.Partitions,
		LinkDataSize: l.LinkDataSize, NodeDataSize: l.NodeDataSize, LeftoverBug: l.LeftoverBug, Seed: l.Seed,
	}
}

// payloadShape leaves out of payload how its statements are sent and committed. What
// they write decides with what is there about the column.
func payloadShape(p v1alpha1.Payload, clients int32) any {
	p.Autocommit, p.CommitEvery, p.Checksum = nil, 0, false
	p.Engine = lower(p.Engine)
	if !p.TablePerClient {
		clients = 1
	}
	return struct {
		Tables  int32
		Payload v1alpha1.Payload
	}{clients, p}
}

func lower(e v1alpha1.Engine) v1alpha1.Engine { return v1alpha1.Engine(strings.ToLower(string(e))) }
