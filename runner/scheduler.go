package runner

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// scheduling is what the Go runtime has done to the load so far.
type scheduling struct {
	gcPause  time.Duration // the world was stopped, in all
	gcCycles int64
	// delays are how long goroutines were ready and did not run.
	delays *metrics.Float64Histogram
}

const delaysMetric = "/sched/latencies:seconds"

func readScheduling() scheduling {
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	sample := []metrics.Sample{{Name: delaysMetric}}
	metrics.Read(sample)
	s := scheduling{gcPause: gc.PauseTotal, gcCycles: gc.NumGC}
	if sample[0].Value.Kind() == metrics.KindFloat64Histogram {
		s.delays = sample[0].Value.Float64Histogram()
	}
	return s
}

// delaySince is the 99th percentile of the delays after an earlier reading: the upper
// edge of its bucket.
func (s scheduling) delaySince(before scheduling) time.Duration {
	if s.delays == nil || before.delays == nil || len(s.delays.Counts) != len(before.delays.Counts) {
		return 0
	}
	var total, seen uint64
	for i, n := range s.delays.Counts {
		total += n - before.delays.Counts[i]
	}
	if total == 0 {
		return 0
	}
	for i, n := range s.delays.Counts {
		seen += n - before.delays.Counts[i]
		if seen*100 >= total*99 {
			edge := s.delays.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = s.delays.Buckets[i]
			}
			return time.Duration(edge * float64(time.Second))
		}
	}
	return 0
}
