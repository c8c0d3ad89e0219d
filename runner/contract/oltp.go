package contract

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// OLTP is sysbench's set of OLTP tests.
type OLTP struct {
	Script             string        `json:"script"`
	Compat             string        `json:"compat"`
	Tables             int32         `json:"tables"`
	TableSize          int64         `json:"tableSize"`
	Engine             string        `json:"engine,omitempty"`
	CreateTableOptions string        `json:"createTableOptions,omitempty"`
	AutoIncrement      bool          `json:"autoIncrement"`
	Secondary          bool          `json:"secondary,omitempty"`
	CreateSecondary    bool          `json:"createSecondary"`
	BigIntIDs          bool          `json:"bigIntIDs,omitempty"`
	PointSelects       int32         `json:"pointSelects"`
	RangeSelects       bool          `json:"rangeSelects"`
	RangeSize          int64         `json:"rangeSize"`
	SimpleRanges       int32         `json:"simpleRanges"`
	SumRanges          int32         `json:"sumRanges"`
	OrderRanges        int32         `json:"orderRanges"`
	DistinctRanges     int32         `json:"distinctRanges"`
	IndexUpdates       int32         `json:"indexUpdates"`
	NonIndexUpdates    int32         `json:"nonIndexUpdates"`
	DeleteInserts      int32         `json:"deleteInserts"`
	SkipTransaction    bool          `json:"skipTransaction,omitempty"`
	RandomPoints       int32         `json:"randomPoints"`
	NumberOfRanges     int32         `json:"numberOfRanges"`
	Delta              int32         `json:"delta"`
	ReconnectEvery     int64         `json:"reconnectEvery,omitempty"`
	Statements         string        `json:"statements,omitempty"`
	Distribution       *Distribution `json:"distribution,omitempty"`
	IgnoreErrors       []int32       `json:"ignoreErrors,omitempty"`
	NoRollbackOnRetry  bool          `json:"noRollbackOnRetry,omitempty"`
	Loaders            int32         `json:"loaders"`
	Seed               *int64        `json:"seed,omitempty"`
}

// The scripts of oltp.
const (
	OLTPPointSelect    = "PointSelect"
	OLTPReadOnly       = "ReadOnly"
	OLTPReadWrite      = "ReadWrite"
	OLTPWriteOnly      = "WriteOnly"
	OLTPUpdateIndex    = "UpdateIndex"
	OLTPUpdateNonIndex = "UpdateNonIndex"
	OLTPInsert         = "Insert"
	OLTPDelete         = "Delete"
	OLTPBulkInsert     = "BulkInsert"
	OLTPRandomPoints   = "RandomPoints"
	OLTPRandomRanges   = "RandomRanges"
)

// The generations of sysbench.
const (
	Sysbench05 = "sysbench-0.5"
	Sysbench10 = "sysbench-1.0"
	Sysbench11 = "sysbench-1.1"
)

// How statements are sent.
const (
	StatementsPrepared = "Prepared"
	StatementsText     = "Text"
)

// Distribution is how random ids spread over a range. ParetoH and ZipfianExponent are
// decimal numbers.
type Distribution struct {
	Type            string `json:"type,omitempty"`
	Iterations      int32  `json:"iterations"`
	SpecialPercent  int32  `json:"specialPercent"`
	SpecialShare    int32  `json:"specialShare"`
	ParetoH         string `json:"paretoH"`
	ZipfianExponent string `json:"zipfianExponent"`
}

// The types of distribution. An empty one is that of the generation of sysbench.
const (
	DistributionUniform          = "Uniform"
	DistributionGaussian         = "Gaussian"
	DistributionSpecial          = "Special"
	DistributionSpecialCorrected = "SpecialCorrected"
	DistributionPareto           = "Pareto"
	DistributionZipfian          = "Zipfian"
)

var (
	oltpScripts = []string{
		OLTPPointSelect, OLTPReadOnly, OLTPReadWrite, OLTPWriteOnly, OLTPUpdateIndex, OLTPUpdateNonIndex,
		OLTPInsert, OLTPDelete, OLTPBulkInsert, OLTPRandomPoints, OLTPRandomRanges,
	}
	oltpCompats   = []string{Sysbench05, Sysbench10, Sysbench11}
	distributions = []string{
		DistributionUniform, DistributionGaussian, DistributionSpecial, DistributionSpecialCorrected,
		DistributionPareto, DistributionZipfian,
	}
	tableOptions = regexp.MustCompile(`^[A-Za-z0-9_=, ]{0,256}$`)
)

func (o *OLTP) validate() error {
	oneTable := o.Script == OLTPRandomPoints || o.Script == OLTPRandomRanges
	switch {
	case !slices.Contains(oltpScripts, o.Script):
		return fmt.Errorf("workload.oltp.script is %q, must be one of %v", o.Script, oltpScripts)
	case !slices.Contains(oltpCompats, o.Compat):
		return fmt.Errorf("workload.oltp.compat is %q, must be one of %v", o.Compat, oltpCompats)
	case o.Engine != "" && !word.MatchString(o.Engine):
		return fmt.Errorf("workload.oltp.engine is %q, must be the name of a storage engine", o.Engine)
	case !tableOptions.MatchString(o.CreateTableOptions):
		return errors.New("workload.oltp.createTableOptions must be at most 256 letters, digits, blanks and _ = ,")
	case !slices.Contains([]string{"", StatementsPrepared, StatementsText}, o.Statements):
		return fmt.Errorf("workload.oltp.statements is %q, must be Prepared or Text", o.Statements)
	case oneTable && o.Tables != 1:
		return fmt.Errorf("workload.oltp.tables is %d, must be 1 for the script %s", o.Tables, o.Script)
	case !o.BigIntIDs && o.TableSize > o.largestInt():
		return fmt.Errorf("workload.oltp.tableSize is %d, which needs bigIntIDs: true: an INTEGER ends at %d", o.TableSize, o.largestInt())
	}
	return cmp.Or(o.validateErrors(), o.validateNumbers(), o.Distribution.validate())
}

func (o *OLTP) validateErrors() error {
	for _, number := range o.IgnoreErrors {
		if number < 1 || number > math.MaxUint16 {
			return fmt.Errorf("workload.oltp.ignoreErrors: %d is not an error number, which are 1 to 65535", number)
		}
	}
	return nil
}

// largestInt is the largest value of a column of type INTEGER: those of sysbench 0.5
// are unsigned.
func (o *OLTP) largestInt() int64 {
	if o.Compat == Sysbench05 {
		return math.MaxUint32
	}
	return math.MaxInt32
}

func (o *OLTP) validateNumbers() error {
	const many = math.MaxInt32
	for _, f := range []struct {
		name     string
		n        int64
		min, max int64
	}{
		{"tables", int64(o.Tables), 1, 100000},
		{"tableSize", o.TableSize, 1, 1 << 48},
		{"rangeSize", o.RangeSize, 1, 1 << 48},
		{"pointSelects", int64(o.PointSelects), 0, many},
		{"simpleRanges", int64(o.SimpleRanges), 0, many},
		{"sumRanges", int64(o.SumRanges), 0, many},
		{"orderRanges", int64(o.OrderRanges), 0, many},
		{"distinctRanges", int64(o.DistinctRanges), 0, many},
		{"indexUpdates", int64(o.IndexUpdates), 0, many},
		{"nonIndexUpdates", int64(o.NonIndexUpdates), 0, many},
		{"deleteInserts", int64(o.DeleteInserts), 0, many},
		{"randomPoints", int64(o.RandomPoints), 1, 1000},
		{"numberOfRanges", int64(o.NumberOfRanges), 1, 1000},
		{"delta", int64(o.Delta), 0, many},
		{"reconnectEvery", o.ReconnectEvery, 0, math.MaxInt64},
		{"loaders", int64(o.Loaders), 1, 1024},
	} {
		if f.n < f.min || f.n > f.max {
			return fmt.Errorf("workload.oltp.%s is %d, must be %d to %d", f.name, f.n, f.min, f.max)
		}
	}
	return nil
}

func (d *Distribution) validate() error {
	if d == nil {
		return nil
	}
	if d.Type != "" && !slices.Contains(distributions, d.Type) {
		return fmt.Errorf("workload.oltp.distribution.type is %q, must be one of %v", d.Type, distributions)
	}
	for _, f := range []struct {
		name        string
		n, min, max int32
	}{
		{"iterations", d.Iterations, 1, 1000},
		{"specialPercent", d.SpecialPercent, 1, 100},
		{"specialShare", d.SpecialShare, 0, 100},
	} {
		if f.n < f.min || f.n > f.max {
			return fmt.Errorf("workload.oltp.distribution.%s is %d, must be %d to %d", f.name, f.n, f.min, f.max)
		}
	}
	if h, err := strconv.ParseFloat(d.ParetoH, 64); err != nil || !(h > 0 && h < 1) {
		return fmt.Errorf("workload.oltp.distribution.paretoH is %q, must be a number greater than 0 and less than 1", d.ParetoH)
	}
	if e, err := strconv.ParseFloat(d.ZipfianExponent, 64); err != nil || !(e >= 0 && e < 10) {
		return fmt.Errorf("workload.oltp.distribution.zipfianExponent is %q, must be a number from 0 to less than 10", d.ZipfianExponent)
	}
	return nil
}
