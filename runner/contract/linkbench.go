package contract

import (
	"fmt"
	"math"
	"strconv"
)

// LinkBench is Facebook's social graph: nodes, links and their counts.
type LinkBench struct {
	StartID              int64        `json:"startID"`
	MaxID                int64        `json:"maxID"`
	LinkTypes            int32        `json:"linkTypes"`
	NLinksMax            int64        `json:"nlinksMax,omitempty"`
	Engine               string       `json:"engine"`
	Partitions           int32        `json:"partitions"`
	Loaders              int32        `json:"loaders"`
	LoadBatch            int32        `json:"loadBatch"`
	LinkDataSize         int32        `json:"linkDataSize"`
	NodeDataSize         int32        `json:"nodeDataSize"`
	Mix                  LinkBenchMix `json:"mix"`
	MaxFailedRequests    int32        `json:"maxFailedRequests"`
	WriteUncorrelatedBug bool         `json:"writeUncorrelatedBug"`
	LeftoverBug          bool         `json:"leftoverBug"`
	Seed                 *int64       `json:"seed,omitempty"`
}

// LinkBenchMix is the share of each operation in percent, as decimal numbers. They add
// to 100.
type LinkBenchMix struct {
	AddLink     string `json:"addLink"`
	DeleteLink  string `json:"deleteLink"`
	UpdateLink  string `json:"updateLink"`
	CountLink   string `json:"countLink"`
	GetLink     string `json:"getLink"`
	GetLinkList string `json:"getLinkList"`
	GetNode     string `json:"getNode"`
	AddNode     string `json:"addNode"`
	UpdateNode  string `json:"updateNode"`
	DeleteNode  string `json:"deleteNode"`
}

// Largest sizes in bytes of the data of a link and of a node.
const (
	MaxLinkData = 255
	MaxNodeData = 1 << 20
)

// mixTolerance is how far the shares may be from 100 in sum.
const mixTolerance = 1e-5

func (l *LinkBench) validate() error {
	switch {
	case l.MaxID <= l.StartID:
		return fmt.Errorf("workload.linkbench.maxID is %d, must be greater than startID (%d)", l.MaxID, l.StartID)
	case !word.MatchString(l.Engine):
		return fmt.Errorf("workload.linkbench.engine is %q, must be the name of a storage engine", l.Engine)
	}
	for _, f := range []struct {
		name     string
		n        int64
		min, max int64
	}{
		{"startID", l.StartID, 1, 1 << 40},
		{"maxID", l.MaxID, 2, 1 << 40},
		{"linkTypes", int64(l.LinkTypes), 1, 1000},
		{"nlinksMax", l.NLinksMax, 0, math.MaxInt64},
		{"partitions", int64(l.Partitions), 0, 1024},
		{"loaders", int64(l.Loaders), 1, 1024},
		{"loadBatch", int64(l.LoadBatch), 1, 65536},
		{"linkDataSize", int64(l.LinkDataSize), 0, MaxLinkData},
		{"nodeDataSize", int64(l.NodeDataSize), 0, MaxNodeData},
		{"maxFailedRequests", int64(l.MaxFailedRequests), -1, math.MaxInt32},
	} {
		if f.n < f.min || f.n > f.max {
			return fmt.Errorf("workload.linkbench.%s is %d, must be %d to %d", f.name, f.n, f.min, f.max)
		}
	}
	return l.Mix.validate()
}

func (m *LinkBenchMix) validate() error {
	var sum float64
	for _, f := range []struct{ name, share string }{
		{"addLink", m.AddLink}, {"deleteLink", m.DeleteLink}, {"updateLink", m.UpdateLink}, {"countLink", m.CountLink},
		{"getLink", m.GetLink}, {"getLinkList", m.GetLinkList}, {"getNode", m.GetNode}, {"addNode", m.AddNode},
		{"updateNode", m.UpdateNode}, {"deleteNode", m.DeleteNode},
	} {
		share, err := strconv.ParseFloat(f.share, 64)
		if err != nil || !(share >= 0 && share <= 100) {
			return fmt.Errorf("workload.linkbench.mix.%s is %q, must be a number from 0 to 100", f.name, f.share)
		}
		sum += share
	}
	if math.Abs(sum-100) > mixTolerance {
		return fmt.Errorf("workload.linkbench.mix: the shares add to %.7g, must be 100", sum)
	}
	return nil
}
