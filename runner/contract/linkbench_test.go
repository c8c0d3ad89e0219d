package contract

import (
	"strings"
	"testing"
)

func goodLinkBench() *LinkBench {
	return &LinkBench{
		StartID: 1, MaxID: 10000001, LinkTypes: 2, Engine: "InnoDB", Partitions: 16, Loaders: 10, LoadBatch: 1024,
		LinkDataSize: 8, NodeDataSize: 128, MaxFailedRequests: 100, WriteUncorrelatedBug: true, LeftoverBug: true,
		Mix: LinkBenchMix{AddLink: "8.9886601", DeleteLink: "2.9907664", UpdateLink: "8.0122125", CountLink: "4.8863567",
			GetLink: "0.5261142", GetLinkList: "50.7119145", GetNode: "12.9326683", AddNode: "2.5732789", UpdateNode: "7.366437",
			DeleteNode: "1.0115914"},
	}
}

func TestLinkBenchValidates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*LinkBench)
		want   string // of the error; "" is none
	}{
		{"good", func(*LinkBench) {}, ""},
		{"one node", func(l *LinkBench) { l.MaxID = 2 }, ""},
		{"no node", func(l *LinkBench) { l.MaxID = l.StartID }, "workload.linkbench.maxID is 1, must be greater than startID (1)"},
		{"start", func(l *LinkBench) { l.StartID = 0 }, "workload.linkbench.startID is 0"},
		{"too many", func(l *LinkBench) { l.MaxID = 1 << 41 }, "workload.linkbench.maxID"},
		{"engine", func(l *LinkBench) { l.Engine = "InnoDB;" }, "workload.linkbench.engine"},
		{"types", func(l *LinkBench) { l.LinkTypes = 0 }, "workload.linkbench.linkTypes is 0, must be 1 to 1000"},
		{"partitions", func(l *LinkBench) { l.Partitions = 1025 }, "workload.linkbench.partitions"},
		{"loaders", func(l *LinkBench) { l.Loaders = 0 }, "workload.linkbench.loaders"},
		{"batch", func(l *LinkBench) { l.LoadBatch = 0 }, "workload.linkbench.loadBatch"},
		{"link data", func(l *LinkBench) { l.LinkDataSize = 256 }, "workload.linkbench.linkDataSize"},
		{"node data", func(l *LinkBench) { l.NodeDataSize = 1<<20 + 1 }, "workload.linkbench.nodeDataSize"},
		{"failures", func(l *LinkBench) { l.MaxFailedRequests = -2 }, "workload.linkbench.maxFailedRequests"},
		{"no share", func(l *LinkBench) { l.Mix.GetNode = "" }, `workload.linkbench.mix.getNode is ""`},
		{"negative share", func(l *LinkBench) { l.Mix.AddLink = "-1" }, `workload.linkbench.mix.addLink is "-1"`},
		{"not a number", func(l *LinkBench) { l.Mix.AddLink = "NaN" }, `workload.linkbench.mix.addLink is "NaN"`},
		{"sum", func(l *LinkBench) { l.Mix.AddLink = "10" }, "workload.linkbench.mix: the shares add to 101.0113, must be 100"},
		{"nearly the sum", func(l *LinkBench) { l.Mix.AddLink = "8.988661" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := goodLinkBench()
			tt.change(l)
			w := Workload{LinkBench: l}
			err := w.validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if w.Name() != "linkbench" {
				t.Errorf("name %q", w.Name())
			}
		})
	}
}
