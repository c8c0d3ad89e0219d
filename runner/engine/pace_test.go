package engine

import (
	"math"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/mysql"
)

const second = int64(time.Second)

func seconds(n float64) contract.Duration { return contract.Duration(n * float64(time.Second)) }

// TestArrivals counts those of each stretch of a load against its rate.
func TestArrivals(t *testing.T) {
	ramp := []contract.RampStep{{For: seconds(10), Rate: 1000}, {For: seconds(5), Rate: 4000}}
	for _, arrivals := range []string{contract.ArrivalsUniform, contract.ArrivalsPoisson} {
		a := newArrivals(&Job{Load: contract.Load{Rate: 2000, Arrivals: arrivals, Duration: seconds(25), Warmup: seconds(2), Ramp: ramp}})
		var warmup, first, later, rest float64
		last := int64(math.MinInt64)
		for {
			at, ok := a.take()
			if !ok {
				break
			}
			if at < last {
				t.Fatalf("%s: %d after %d", arrivals, at, last)
			}
			last = at
			switch {
			case at < 0:
				warmup++
			case at < 10*second:
				first++
			case at < 15*second:
				later++
			default:
				rest++
			}
		}
		for name, n := range map[string]struct{ got, want float64 }{
			"warm-up": {warmup, 2000}, "first step": {first, 10_000}, "second step": {later, 20_000}, "after the ramp": {rest, 20_000},
		} {
			// Evenly spaced ones are exact; of the others, five standard deviations.
			slack := 1.0
			if arrivals == contract.ArrivalsPoisson {
				slack = 5 * math.Sqrt(n.want)
			}
			if math.Abs(n.got-n.want) > slack {
				t.Errorf("%s, %s: %v arrivals, want %v", arrivals, name, n.got, n.want)
			}
		}
		if last < 25*second-second/10 {
			t.Errorf("%s: the last arrival is at %d", arrivals, last)
		}
	}
}

// TestPoissonGaps holds the gaps against the exponential distribution: their mean is
// their standard deviation.
func TestPoissonGaps(t *testing.T) {
	a := newArrivals(&Job{Load: contract.Load{Rate: 1000}})
	var sum, squares float64
	const n = 100_000
	last := int64(0)
	for range n {
		at, _ := a.take()
		gap := float64(at-last) / float64(time.Millisecond)
		sum, squares, last = sum+gap, squares+gap*gap, at
	}
	mean := sum / n
	if deviation := math.Sqrt(squares/n - mean*mean); math.Abs(mean-1) > 0.02 || math.Abs(deviation-1) > 0.03 {
		t.Errorf("gaps of %v ± %v ms", mean, deviation)
	}
}

// TestReplicasTakeTurns: evenly spaced arrivals of several replicas are so together.
func TestReplicasTakeTurns(t *testing.T) {
	for first, want := range map[int]int64{0: 0, 5: second / 20, 10: second / 10} {
		a := newArrivals(&Job{First: first, Total: 20, Load: contract.Load{Rate: 5, Arrivals: contract.ArrivalsUniform}})
		if at, _ := a.take(); at != want {
			t.Errorf("client %d: first arrival at %d, want %d", first, at, want)
		}
	}
}

func TestArrivalsLeft(t *testing.T) {
	a := newArrivals(&Job{Load: contract.Load{Rate: 10, Arrivals: contract.ArrivalsUniform, Duration: seconds(10), Warmup: seconds(1)}})
	for range 15 { // ten of them in the warm-up
		a.take()
	}
	a.miss(-1)
	a.miss(1)
	if got := a.left(2 * second); got != 1+15 {
		t.Errorf("%d left after 2 s, want those from 0.5 s on and the one that was missed", got)
	}
	if got := a.left(99 * second); got != 1+80 {
		t.Errorf("%d left at the end", got)
	}
}

func TestActiveFrom(t *testing.T) {
	p := newPace(&Job{Load: contract.Load{Clients: 9, Ramp: []contract.RampStep{
		{For: seconds(1), Clients: 2}, {For: seconds(1), Clients: 5}, {For: seconds(1), Clients: 1}}}})
	for _, tt := range []struct {
		client    int
		now, want int64
	}{
		{0, -second, -second}, {0, 0, 0}, {1, 0, 0}, {1, 2 * second, 3 * second}, {2, -second, second}, {2, 1.5 * 1e9, 1.5 * 1e9},
		{2, 2 * second, 3 * second}, {8, 0, 3 * second}, {8, 4 * second, 4 * second},
	} {
		if got := p.activeFrom(tt.client, tt.now); got != tt.want {
			t.Errorf("client %d at %d: active from %d, want %d", tt.client, tt.now, got, tt.want)
		}
	}
	none := newPace(&Job{})
	if got := none.activeFrom(3, -5); got != -5 {
		t.Errorf("without a ramp: %d", got)
	}
}

// TestOpenLoop: a server that cannot keep up makes events late, and then drops them.
func TestOpenLoop(t *testing.T) {
	forEach(t, func(t *testing.T, e Engine) {
		// Two clients of 5 ms an event each do 400 of 1,000 events a second at most.
		w := &fake{event: func(int, int64) (int, error) { time.Sleep(5 * time.Millisecond); return 0, nil }}
		m := drive(t, e, w, &pool{}, contract.Load{Clients: 2, Rate: 1000, Arrivals: contract.ArrivalsUniform, Duration: seconds(0.5)})
		total := m.Totals.Events + m.Totals.Dropped
		if m.Err != nil || total < 499 || total > 500 || m.Totals.Dropped < 300 || m.Totals.Late < 100 {
			t.Errorf("%v, %+v", m.Err, m.Totals)
		}
		if latest := m.Operations[0].MaxNanos; latest < second/4 {
			t.Errorf("latencies count from the start, not the arrival: at most %s", time.Duration(latest))
		}
		// One that can.
		m = drive(t, e, &fake{}, &pool{}, contract.Load{Clients: 4, Rate: 200, Duration: seconds(0.5), Warmup: seconds(0.1)})
		if n := m.Totals.Events + m.Totals.Dropped; m.Err != nil || n < 60 || n > 140 || m.Wakeups.Count == 0 {
			t.Errorf("%v, %+v, %+v", m.Err, m.Totals, m.Wakeups)
		}
		if m.Elapsed < time.Second/2 {
			t.Errorf("it ended after %s", m.Elapsed)
		}
	})
}

func TestThinkTime(t *testing.T) {
	forEach(t, func(t *testing.T, e Engine) {
		m := drive(t, e, &fake{}, &pool{}, contract.Load{Clients: 3, EventsPerClient: 4, Think: seconds(0.05)})
		if m.Err != nil || m.Totals.Events != 12 || m.Elapsed < 150*time.Millisecond {
			t.Errorf("%v, %+v in %s", m.Err, m.Totals, m.Elapsed)
		}
	})
}

func TestRampOfClients(t *testing.T) {
	forEach(t, func(t *testing.T, e Engine) {
		begun := make([]time.Time, 4)
		w := &fake{event: func(client int, n int64) (int, error) {
			if n == 1 {
				begun[client] = time.Now()
			}
			time.Sleep(time.Millisecond)
			return 0, nil
		}}
		m := drive(t, e, w, &pool{}, contract.Load{Clients: 4, Duration: seconds(0.4), Ramp: []contract.RampStep{{For: seconds(0.1), Clients: 1}, {For: seconds(0.1), Clients: 2}}})
		if m.Err != nil {
			t.Fatal(m.Err)
		}
		for client, from := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond} {
			if since := begun[client].Sub(m.Start); since < from || begun[client].IsZero() {
				t.Errorf("client %d began after %s, want %s", client, since, from)
			}
		}
	})
}

// TestStopWakesSleepers: an end that comes early does not wait for who waits.
func TestStopWakesSleepers(t *testing.T) {
	forEach(t, func(t *testing.T, e Engine) {
		for _, load := range []contract.Load{
			{Clients: 3, Think: seconds(3600)}, {Clients: 3, Rate: 1, Arrivals: contract.ArrivalsUniform},
			{Clients: 3, Ramp: []contract.RampStep{{For: seconds(3600), Clients: 1}}},
		} {
			failing := &fake{event: func(int, int64) (int, error) {
				time.Sleep(time.Millisecond)
				return 0, mysqlError(1064)
			}}
			began := time.Now()
			if m := drive(t, e, failing, &pool{}, load); mysql.Number(m.Err) != 1064 || time.Since(began) > 10*time.Second {
				t.Errorf("%+v: %v after %s", load, m.Err, time.Since(began))
			}
		}
	})
}

func TestTakingAnArrivalDoesNotAllocate(t *testing.T) {
	a := newArrivals(&Job{Load: contract.Load{Rate: 1000, Ramp: []contract.RampStep{{For: seconds(1), Rate: 5}}}})
	if n := testing.AllocsPerRun(1000, func() { a.take() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkArrival(b *testing.B) {
	a := newArrivals(&Job{Load: contract.Load{Rate: 1000}})
	b.ReportAllocs()
	for b.Loop() {
		a.take()
	}
}
