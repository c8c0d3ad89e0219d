package runner

import (
	"math"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestDelaySince(t *testing.T) {
	reading := func(counts ...uint64) scheduling {
		return scheduling{delays: &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 1e-6, 1e-3, math.Inf(1)}}}
	}
	before := reading(1000, 5, 0)
	for want, after := range map[time.Duration]scheduling{
		0:                before,
		time.Microsecond: reading(1100, 6, 0),
		time.Millisecond: reading(1100, 15, 0),
	} {
		if got := after.delaySince(before); got != want {
			t.Errorf("%v: %s, want %s", after.delays.Counts, got, want)
		}
	}
	if got := (scheduling{}).delaySince(before); got != 0 {
		t.Errorf("without a histogram: %s", got)
	}
}

func TestReadScheduling(t *testing.T) {
	before := readScheduling()
	runtime.GC()
	after := readScheduling()
	if after.gcCycles <= before.gcCycles || after.gcPause <= before.gcPause || after.delays == nil {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
