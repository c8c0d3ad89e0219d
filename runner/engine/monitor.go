package engine

import (
	"sync/atomic"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/measure"
)

// Monitor shows how far a job is, while it runs.
type Monitor struct {
	state atomic.Pointer[monitored]
}

type monitored struct {
	epoch    time.Time
	load     contract.Load
	recorder *measure.Recorder
}

func (m *Monitor) watch(epoch time.Time, load contract.Load, recorder *measure.Recorder) {
	if m != nil {
		m.state.Store(&monitored{epoch, load, recorder})
	}
}

// Progress fills in what is known of the measured part at now; before it PercentDone
// is 0. Counts are up to a second late.
func (m *Monitor) Progress(now time.Time, p *contract.Progress) {
	s := m.state.Load()
	if s == nil {
		return
	}
	elapsed := now.Sub(s.epoch)
	totals := s.recorder.Totals()
	latest := s.recorder.Latest(elapsed.Nanoseconds())
	p.Events, p.Errors = totals.Events, totals.Errors
	p.PercentDone = percentDone(s.load, totals.Events+totals.Errors, elapsed)
	p.P99Nanos = latest.P99Nanos
	if latest.WidthNanos > 0 {
		p.EventsPerSecondMilli = latest.Events * 1000 * int64(time.Second) / latest.WidthNanos
	}
}

// percentDone is by the stop rule that is nearest to being met.
func percentDone(load contract.Load, events int64, elapsed time.Duration) int32 {
	done := -1.0
	if load.Events > 0 {
		done = max(done, float64(events)/float64(load.Events))
	}
	if load.EventsPerClient > 0 {
		done = max(done, float64(events)/float64(load.EventsPerClient)/float64(load.Clients))
	}
	if load.Duration > 0 {
		done = max(done, float64(elapsed)/float64(load.Duration), 0)
	}
	if done < 0 {
		return -1
	}
	return int32(min(done, 1) * 100)
}
