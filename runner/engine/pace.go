package engine

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"dbbench.dev/operator/runner/contract"
)

const (
	// onTime is up to how late in nanoseconds an arrival may be started and count as on
	// time.
	onTime = int64(100 * time.Microsecond)
	// maxWait is how long in nanoseconds an arrival waits for a client that is free. Then
	// it is dropped: where the server cannot keep up, the queue stays within bounds, and
	// the number of those dropped says by how much it cannot.
	maxWait = int64(10 * time.Second)
)

// pace is when clients may start their events. Times are nanoseconds since the measured
// part began.
type pace struct {
	arrivals *arrivals // of an open loop, nil in a closed one
	think    int64     // of a closed loop
	// steps of the clients that are active; after them all are.
	steps []clientStep
}

type clientStep struct {
	until   int64
	clients int
}

func newPace(job *Job) pace {
	l := job.Load
	p := pace{think: int64(l.Think)}
	if l.Rate > 0 {
		p.think, p.arrivals = 0, newArrivals(job)
		return p
	}
	var until int64
	for _, s := range l.Ramp {
		until += int64(s.For)
		p.steps = append(p.steps, clientStep{until, int(s.Clients)})
	}
	return p
}

// paced reports whether clients wait for the clock.
func (p *pace) paced() bool { return p.arrivals != nil || p.think > 0 || len(p.steps) > 0 }

// activeFrom is the time from which client i may start an event, now where it may at
// once. The warm-up belongs to the first step.
func (p *pace) activeFrom(i int, now int64) int64 {
	from := now
	for _, s := range p.steps {
		if now < s.until && i < s.clients {
			return max(now, from)
		}
		from = s.until
	}
	return max(now, from)
}

// left counts the arrivals up to end that no client took.
func (p *pace) left(end int64) int64 {
	if p.arrivals == nil {
		return 0
	}
	return p.arrivals.left(end)
}

// arrivals are the arrivals of an open loop, from absolute offsets: no event that is
// late moves those after it. All clients draw from them, in order.
type arrivals struct {
	mu     sync.Mutex
	random *rand.Rand // nil where they are spaced evenly
	rates  rates
	end    int64 // no arrival is at or after it; 0 is no limit
	offset float64
	next   int64
	missed int64
}

func newArrivals(job *Job) *arrivals {
	l := job.Load
	a := &arrivals{rates: newRates(l), end: int64(l.Duration)}
	if l.Arrivals == contract.ArrivalsUniform {
		// Replicas take turns.
		if job.Total > 0 {
			a.offset = float64(job.First) / float64(job.Total)
		}
	} else {
		// The same seed gives the same arrivals in each run: runs are compared under the
		// same load.
		a.random = rand.New(rand.NewPCG(0, uint64(job.First)))
		a.offset = a.random.ExpFloat64()
	}
	a.next = a.rates.at(a.offset)
	return a
}

// take returns the next arrival; the second result is false when there is none.
func (a *arrivals) take() (int64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end > 0 && a.next >= a.end {
		return 0, false
	}
	at := a.next
	a.advance()
	return at, true
}

func (a *arrivals) advance() {
	if a.random == nil {
		a.offset++
	} else {
		a.offset += a.random.ExpFloat64()
	}
	a.next = a.rates.at(a.offset)
}

// miss counts one that was taken and could not be started before the load ended.
func (a *arrivals) miss(at int64) {
	if at < 0 {
		return // of the warm-up
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed++
}

// left counts those of the measured part that were missed, or that nobody took until
// end.
func (a *arrivals) left(end int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end > 0 {
		end = min(end, a.end)
	}
	n := a.missed
	for a.next < end {
		if a.next >= 0 {
			n++
		}
		a.advance()
	}
	return n
}

// rates are arrivals per nanosecond over time. The rate of a step holds from its begin
// to that of the next one.
type rates []rateStep

type rateStep struct {
	begin  int64
	rate   float64
	before float64 // arrivals expected before begin
}

// newRates has the first rate hold in the warm-up, too, and the load's own after the
// ramp.
func newRates(l contract.Load) rates {
	begin := -int64(l.Warmup)
	var out rates
	add := func(perSecond int64) {
		s := rateStep{begin: begin, rate: float64(perSecond) / float64(time.Second)}
		if n := len(out); n > 0 {
			s.before = out[n-1].before + float64(begin-out[n-1].begin)*out[n-1].rate
		}
		out = append(out, s)
	}
	var until int64
	for _, s := range l.Ramp {
		add(s.Rate)
		until += int64(s.For)
		begin = until
	}
	add(l.Rate)
	return out
}

// at is the time before which the given number of arrivals is expected: the inverse of
// the integral of the rate.
func (r rates) at(expected float64) int64 {
	i := 0
	for i+1 < len(r) && r[i+1].before <= expected {
		i++
	}
	s := r[i]
	offset := (expected - s.before) / s.rate
	if offset > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return s.begin + int64(offset)
}
