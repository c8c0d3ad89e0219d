package results

import (
	"time"

	"dbbench.dev/operator/runner/contract"
)

// Window is the part of a run in which all its replicas measured.
type Window struct {
	StartUnixNanos int64 `json:"startUnixNanos"`
	WidthNanos     int64 `json:"widthNanos"`
	// Events are those of all replicas in the window, by their time series.
	Events float64 `json:"events"`
}

// CommonWindow is that of several records, nil for one, and of no width where the
// replicas did not measure at the same time. It reads the clocks of the replicas'
// nodes, which must agree to well below the length of the run.
func CommonWindow(records []contract.Record) *Window {
	if len(records) < 2 {
		return nil
	}
	var start, end int64
	for i, r := range records {
		from, to := span(r)
		if i == 0 {
			start, end = from, to
			continue
		}
		start, end = max(start, from), min(end, to)
	}
	w := &Window{StartUnixNanos: start, WidthNanos: max(end-start, 0)}
	for _, r := range records {
		w.Events += eventsIn(r, start, end)
	}
	return w
}

func span(r contract.Record) (from, to int64) {
	return r.Result.MeasureStartUnixNanos, r.Result.MeasureStartUnixNanos + r.Result.ElapsedNanos
}

// eventsIn counts the events of a record between two times. Those of an interval are
// taken as even over it; without a series, those of the run are.
func eventsIn(r contract.Record, start, end int64) (n float64) {
	from, to := span(r)
	if len(r.Series) == 0 {
		return float64(r.Result.Events) * share(from, to, start, end)
	}
	for _, i := range r.Series {
		n += float64(i.Events) * share(from+i.StartNanos, from+i.StartNanos+i.WidthNanos, start, end)
	}
	return n
}

// share is the part of an interval that lies within a window.
func share(from, to, start, end int64) float64 {
	if from >= to {
		return 0
	}
	return float64(max(min(to, end)-max(from, start), 0)) / float64(to-from)
}

// StartSkew is the time in nanoseconds between the first and the last replica's start,
// each by its own clock.
func StartSkew(records []contract.Record) int64 {
	if len(records) == 0 {
		return 0
	}
	first, last := records[0].Result.MeasureStartUnixNanos, records[0].Result.MeasureStartUnixNanos
	for _, r := range records[1:] {
		first, last = min(first, r.Result.MeasureStartUnixNanos), max(last, r.Result.MeasureStartUnixNanos)
	}
	return last - first
}

// elapsed is the duration of a run: that of its slowest replica, as all start together.
func elapsed(run Envelope) time.Duration {
	longest := int64(1) // the divisor of throughput
	for _, r := range run.Records {
		longest = max(longest, r.Result.ElapsedNanos)
	}
	return time.Duration(longest)
}

// throughput is the number of successful events per second of a run: of several
// replicas, while all of them measured.
func throughput(run Envelope) float64 {
	if w := run.Window; w != nil && w.WidthNanos > 0 {
		return w.Events / time.Duration(w.WidthNanos).Seconds()
	}
	var events int64
	for _, r := range run.Records {
		events += r.Result.Events
	}
	return float64(events) / elapsed(run).Seconds()
}
