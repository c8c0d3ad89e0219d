// Package measure records the latencies of events: a histogram for each kind of
// event and a time series over all of them. Recording neither locks nor allocates;
// each client fills a small buffer of its own, which goes to the shared histograms
// when it is full or a second old.
package measure

import (
	"fmt"
	"maps"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
)

// The range of latencies that a histogram tells apart, in nanoseconds, with three
// significant digits. What lies outside is recorded as the limit, and counted.
const (
	MinLatency = int64(time.Microsecond)
	MaxLatency = int64(time.Hour)

	significantDigits = 3
)

const (
	// bufferedSamples times the size of a sample, 24 bytes, is what a client costs:
	// 4,096 clients take 12.6 MB.
	bufferedSamples = 128
	// flushAfter is the age in nanoseconds at which a buffer is flushed.
	flushAfter = int64(time.Second)
	// maxErrorNumbers bounds the numbers that are counted apart; the rest counts as 0.
	maxErrorNumbers = 32
)

// Recorder gathers what the clients of a run measure. Times are nanoseconds since
// the measured part began.
type Recorder struct {
	mu              sync.Mutex
	operations      []operation
	series          series
	events          int64
	errors          int64
	errorsByNumber  map[uint16]int64
	retriesByNumber map[uint16]int64
	clamped         int64
	late, dropped   int64
	wakeups         *hdr.Histogram // nil while there was none
}

type operation struct {
	name          string
	histogram     *hdr.Histogram
	sum, min, max int64
}

// NewRecorder returns a recorder for events of the named kinds. An event that ends
// before the measured part belongs to the warm-up and is not counted.
func NewRecorder(operations []string) *Recorder {
	r := &Recorder{series: newSeries(), errorsByNumber: map[uint16]int64{}, retriesByNumber: map[uint16]int64{}}
	for _, name := range operations {
		r.operations = append(r.operations, operation{
			name: name, histogram: hdr.New(MinLatency, MaxLatency, significantDigits),
		})
	}
	return r
}

// NewClient returns a buffer for one client. It must be flushed at the client's end.
func (r *Recorder) NewClient() *Client { return &Client{recorder: r} }

// Client records the events of one client. It is not safe for concurrent use.
type Client struct {
	recorder *Recorder
	n        int
	samples  [bufferedSamples]sample
}

type sample struct {
	end, latency int64
	operation    int32
	errorNumber  int32 // or one of the kinds below
}

// The kinds of sample that are no error of an event.
const (
	success = -1 - iota
	late
	dropped
	woken
	retried
)

// Success records an event of the given kind that ended at end and took latency.
func (c *Client) Success(operation int, end, latency int64) {
	c.add(sample{end, latency, int32(operation), success})
}

// Error records an event that failed with the server's error number, 0 where it had
// none. Its latency is not recorded.
func (c *Client) Error(end int64, number uint16) {
	c.add(sample{end: end, errorNumber: int32(number)})
}

// Retry records an attempt that failed with the server's error number and is followed by
// another one of the same event.
func (c *Client) Retry(at int64, number uint16) {
	c.add(sample{end: at, latency: int64(number), errorNumber: retried})
}

// Late records an arrival of an open loop that was started late.
func (c *Client) Late(at int64) { c.add(sample{end: at, errorNumber: late}) }

// Dropped records an arrival of an open loop that was never started.
func (c *Client) Dropped(at int64) { c.add(sample{end: at, errorNumber: dropped}) }

// Woken records a timer that was to wake somebody at at and did so late by lateness.
func (c *Client) Woken(at, lateness int64) {
	c.add(sample{end: at, latency: lateness, errorNumber: woken})
}

func (c *Client) add(s sample) {
	c.samples[c.n] = s
	c.n++
	if c.n == len(c.samples) || s.end-c.samples[0].end >= flushAfter {
		c.Flush()
	}
}

// Flush hands the buffered events to the recorder.
func (c *Client) Flush() {
	r := c.recorder
	r.mu.Lock()
	for i := range c.samples[:c.n] {
		r.record(&c.samples[i])
	}
	r.mu.Unlock()
	c.n = 0
}

func (r *Recorder) record(s *sample) {
	if s.end < 0 {
		return
	}
	switch {
	case s.errorNumber >= 0:
		r.recordError(s.end, uint16(s.errorNumber))
		return
	case s.errorNumber == late:
		r.late++
		return
	case s.errorNumber == dropped:
		r.dropped++
		return
	case s.errorNumber == woken:
		r.recordWakeup(s.latency)
		return
	case s.errorNumber == retried:
		count(r.retriesByNumber, uint16(s.latency))
		return
	}
	latency := min(max(s.latency, MinLatency), MaxLatency)
	if latency != s.latency {
		r.clamped++
	}
	o := &r.operations[s.operation]
	if o.histogram.TotalCount() == 0 {
		o.min = latency
	}
	// Cannot fail: the latency is within the histogram's range.
	_ = o.histogram.RecordValue(latency)
	o.sum += latency
	o.min = min(o.min, latency)
	o.max = max(o.max, latency)
	r.events++
	r.series.success(s.end, latency)
}

func (r *Recorder) recordWakeup(lateness int64) {
	if r.wakeups == nil {
		r.wakeups = hdr.New(MinLatency, MaxLatency, seriesDigits)
	}
	_ = r.wakeups.RecordValue(min(max(lateness, MinLatency), MaxLatency)) // within the range
}

func (r *Recorder) recordError(at int64, number uint16) {
	count(r.errorsByNumber, number)
	r.errors++
	r.series.failure(at)
}

// count keeps a bounded number of error numbers apart; the rest counts as 0.
func count(byNumber map[uint16]int64, number uint16) {
	if _, known := byNumber[number]; !known && len(byNumber) >= maxErrorNumbers {
		number = 0
	}
	byNumber[number]++
}

// Totals are the counts of a run so far.
type Totals struct {
	Events, Errors int64
	ErrorsByNumber map[uint16]int64
	// RetriesByNumber counts failed attempts that were followed by another one.
	RetriesByNumber map[uint16]int64
	// Clamped counts latencies outside of MinLatency to MaxLatency.
	Clamped int64
	// Late and Dropped count arrivals of an open loop that were started late, and not at
	// all.
	Late, Dropped int64
}

// Wakeups are how late timers were, in nanoseconds.
type Wakeups struct{ Count, P99, Max int64 }

// Totals returns the counts of what was flushed.
func (r *Recorder) Totals() Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Totals{
		Events: r.events, Errors: r.errors, ErrorsByNumber: copied(r.errorsByNumber), RetriesByNumber: copied(r.retriesByNumber),
		Clamped: r.clamped, Late: r.late, Dropped: r.dropped,
	}
}

// copied is nil for a map that is empty.
func copied(byNumber map[uint16]int64) map[uint16]int64 {
	if len(byNumber) == 0 {
		return nil
	}
	return maps.Clone(byNumber)
}

// Wakeups returns the lateness of timers.
func (r *Recorder) Wakeups() Wakeups {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wakeups == nil {
		return Wakeups{}
	}
	return Wakeups{r.wakeups.TotalCount(), r.wakeups.ValueAtQuantile(99), r.wakeups.Max()}
}

// Latest returns the last interval of the series that was complete at now; it is
// zero where there is none.
func (r *Recorder) Latest(now int64) contract.Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.series.latest(now)
}

// Operations returns the latencies of each kind of event.
func (r *Recorder) Operations() ([]contract.Operation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]contract.Operation, 0, len(r.operations))
	for _, o := range r.operations {
		encoded, err := o.histogram.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("encode histogram of %s: %w", o.name, err)
		}
		out = append(out, contract.Operation{
			Name: o.name, Count: o.histogram.TotalCount(), SumNanos: o.sum, MinNanos: o.min, MaxNanos: o.max,
			Histogram: string(encoded),
		})
	}
	return out, nil
}

// Series returns the time series up to end, without the empty intervals after it.
func (r *Recorder) Series(end int64) []contract.Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.series.intervals(end)
}
