package contract

import (
	"strings"
	"testing"
)

func goodOLTP() *OLTP {
	return &OLTP{
		Script: OLTPReadWrite, Compat: Sysbench10, Tables: 1, TableSize: 10000, Engine: "InnoDB", AutoIncrement: true, CreateSecondary: true,
		PointSelects: 10, RangeSelects: true, RangeSize: 100, SimpleRanges: 1, SumRanges: 1, OrderRanges: 1, DistinctRanges: 1,
		IndexUpdates: 1, NonIndexUpdates: 1, DeleteInserts: 1, RandomPoints: 10, NumberOfRanges: 10, Delta: 5,
		IgnoreErrors: []int32{1213, 1020, 1205}, Loaders: 4,
		Distribution: &Distribution{Type: DistributionZipfian, Iterations: 12, SpecialPercent: 1, SpecialShare: 75, ParetoH: "0.2", ZipfianExponent: "0.8"},
	}
}

func TestOLTPValidates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*OLTP)
		want   string // of the error; "" is none
	}{
		{"good", func(*OLTP) {}, ""},
		{"no distribution", func(o *OLTP) { o.Distribution = nil }, ""},
		{"script", func(o *OLTP) { o.Script = "Select" }, `workload.oltp.script is "Select"`},
		{"compat", func(o *OLTP) { o.Compat = "1.0" }, `workload.oltp.compat is "1.0"`},
		{"engine", func(o *OLTP) { o.Engine = "InnoDB;" }, "workload.oltp.engine"},
		{"table options", func(o *OLTP) { o.CreateTableOptions = "COMMENT='x'" }, "workload.oltp.createTableOptions"},
		{"statements", func(o *OLTP) { o.Statements = "auto" }, "workload.oltp.statements"},
		{"one table", func(o *OLTP) { o.Script, o.Tables = OLTPRandomPoints, 2 }, "must be 1 for the script RandomPoints"},
		{"large", func(o *OLTP) { o.TableSize = 1 << 31 }, "bigIntIDs: true"},
		{"large and unsigned", func(o *OLTP) { o.TableSize, o.Compat = 1<<31, Sysbench05 }, ""},
		{"larger and unsigned", func(o *OLTP) { o.TableSize, o.Compat = 1<<32, Sysbench05 }, "bigIntIDs: true"},
		{"large with BIGINT", func(o *OLTP) { o.TableSize, o.BigIntIDs = 1<<31, true }, ""},
		{"tables", func(o *OLTP) { o.Tables = 0 }, "workload.oltp.tables is 0, must be 1 to 100000"},
		{"loaders", func(o *OLTP) { o.Loaders = 0 }, "workload.oltp.loaders"},
		{"range size", func(o *OLTP) { o.RangeSize = 0 }, "workload.oltp.rangeSize"},
		{"negative count", func(o *OLTP) { o.SumRanges = -1 }, "workload.oltp.sumRanges is -1"},
		{"error number", func(o *OLTP) { o.IgnoreErrors = []int32{0} }, "workload.oltp.ignoreErrors: 0"},
		{"distribution", func(o *OLTP) { o.Distribution.Type = "Normal" }, "workload.oltp.distribution.type"},
		{"iterations", func(o *OLTP) { o.Distribution.Iterations = 0 }, "distribution.iterations"},
		{"percent", func(o *OLTP) { o.Distribution.SpecialPercent = 0 }, "distribution.specialPercent"},
		{"share", func(o *OLTP) { o.Distribution.SpecialShare = 101 }, "distribution.specialShare"},
		{"pareto", func(o *OLTP) { o.Distribution.ParetoH = "1" }, "distribution.paretoH"},
		{"pareto is no number", func(o *OLTP) { o.Distribution.ParetoH = "NaN" }, "distribution.paretoH"},
		{"zipfian", func(o *OLTP) { o.Distribution.ZipfianExponent = "-0.5" }, "distribution.zipfianExponent"},
	} {
		o := goodOLTP()
		tt.change(o)
		w := Workload{OLTP: o}
		err := w.validate()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got error %v, want %q in it", tt.name, err, tt.want)
		}
	}
	w := Workload{OLTP: goodOLTP(), Slap: &Slap{}}
	if err := w.validate(); err == nil {
		t.Error("two members are one")
	}
}
