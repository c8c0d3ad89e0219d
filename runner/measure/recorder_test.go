package measure

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
)

const ms = int64(time.Millisecond)

func decode(t *testing.T, o contract.Operation) *hdr.Histogram {
	t.Helper()
	h, err := hdr.Decode([]byte(o.Histogram))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRecorderAgainstSortedSample(t *testing.T) {
	r := NewRecorder([]string{"insert", "select"})
	c := r.NewClient()
	var all []int64
	x := uint64(1)
	for i := range 10000 {
		x = x*6364136223846793005 + 1442695040888963407
		latency := 50_000 + int64(x>>44)*17 // 50 µs to 18 ms
		all = append(all, latency)
		c.Success(1, int64(i)*ms, latency)
	}
	c.Flush()
	ops, err := r.Operations()
	if err != nil {
		t.Fatal(err)
	}
	if ops[0].Count != 0 || ops[0].Name != "insert" {
		t.Errorf("insert: got %+v, want none", ops[0])
	}
	slices.Sort(all)
	var sum int64
	for _, v := range all {
		sum += v
	}
	got := ops[1]
	if got.Count != 10000 || got.SumNanos != sum || got.MinNanos != all[0] || got.MaxNanos != all[len(all)-1] {
		t.Errorf("got count %d sum %d min %d max %d, want 10000 %d %d %d",
			got.Count, got.SumNanos, got.MinNanos, got.MaxNanos, sum, all[0], all[len(all)-1])
	}
	h := decode(t, got)
	if h.TotalCount() != 10000 {
		t.Errorf("histogram counts %d", h.TotalCount())
	}
	for _, q := range []float64{50, 90, 99, 99.9} {
		want := float64(all[int(math.Ceil(q/100*10000))-1])
		if v := float64(h.ValueAtQuantile(q)); math.Abs(v-want)/want > 0.001 {
			t.Errorf("p%v: got %v, want %v within 0.1 %%", q, v, want)
		}
	}
}

func TestRecorderLeavesWarmupOut(t *testing.T) {
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	c.Success(0, -1, ms)
	c.Error(-ms, 1213)
	c.Success(0, 0, ms)
	c.Error(ms, 1213)
	c.Flush()
	got := r.Totals()
	if got.Events != 1 || got.Errors != 1 || got.ErrorsByNumber[1213] != 1 {
		t.Errorf("got %+v, want one event and one error", got)
	}
	if s := r.Series(10 * ms); len(s) != 1 || s[0].Events != 1 || s[0].Errors != 1 || s[0].WidthNanos != 10*ms {
		t.Errorf("series %+v", s)
	}
}

func TestRecorderClampsAndCounts(t *testing.T) {
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	for _, latency := range []int64{0, MinLatency, MaxLatency, math.MaxInt64} {
		c.Success(0, 1, latency)
	}
	c.Flush()
	ops, err := r.Operations()
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Totals(); got.Clamped != 2 || got.Events != 4 {
		t.Errorf("got %+v, want 4 events, 2 of them clamped", got)
	}
	if ops[0].MinNanos != MinLatency || ops[0].MaxNanos != MaxLatency || decode(t, ops[0]).TotalCount() != 4 {
		t.Errorf("got %+v", ops[0])
	}
}

func TestRecorderBoundsErrorNumbers(t *testing.T) {
	r := NewRecorder(nil)
	c := r.NewClient()
	for n := range uint16(1000) {
		c.Error(1, 1000+n)
	}
	c.Flush()
	got := r.Totals()
	var sum int64
	for _, n := range got.ErrorsByNumber {
		sum += n
	}
	if len(got.ErrorsByNumber) > maxErrorNumbers+1 || sum != 1000 || got.Errors != 1000 {
		t.Errorf("%d numbers, sum %d, %d errors", len(got.ErrorsByNumber), sum, got.Errors)
	}
}

func TestClientFlushesByAge(t *testing.T) {
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	c.Success(0, 1, ms)
	if n := r.Totals().Events; n != 0 {
		t.Fatalf("%d events flushed at once", n)
	}
	c.Success(0, 1+flushAfter, ms)
	if n := r.Totals().Events; n != 2 {
		t.Errorf("%d events after a second, want 2", n)
	}
}

func TestSeriesMergesInPairs(t *testing.T) {
	const seconds = 2*maxIntervals + 1 // two rounds of merging
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	for s := range int64(seconds) {
		c.Success(0, s*firstWidth, (s+1)*ms)
		c.Error(s*firstWidth, 0)
	}
	c.Flush()
	got := r.Series(seconds * firstWidth)
	if len(got) != (seconds+3)/4 {
		t.Fatalf("%d intervals", len(got))
	}
	var events, errors int64
	for i, v := range got {
		events += v.Events
		errors += v.Errors
		if v.StartNanos != int64(i)*4*firstWidth {
			t.Errorf("interval %d starts at %d", i, v.StartNanos)
		}
	}
	if events != seconds || errors != seconds {
		t.Errorf("%d events, %d errors, want %d each", events, errors, seconds)
	}
	if first := got[0]; first.MaxNanos != 4*ms || first.P50Nanos < 2*ms || first.P50Nanos > 2*ms+ms/20 {
		t.Errorf("first interval %+v, want a median of 2 ms and a maximum of 4 ms", first)
	}
	if last := got[len(got)-1]; last.WidthNanos != firstWidth {
		t.Errorf("the last interval is %d wide, want what is left", last.WidthNanos)
	}
}

func TestLatestIsTheLastCompleteInterval(t *testing.T) {
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	c.Success(0, 0, ms)
	c.Success(0, firstWidth, ms)
	c.Success(0, firstWidth, ms)
	c.Flush()
	for now, want := range map[int64]int64{-ms: 0, ms: 0, firstWidth + ms: 1, 2*firstWidth + ms: 2, 99 * firstWidth: 0} {
		if got := r.Latest(now).Events; got != want {
			t.Errorf("at %d: got %d events, want %d", now, got, want)
		}
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := NewRecorder([]string{"e"})
	c := r.NewClient()
	c.Success(0, 1, ms)
	c.Error(1, 1213)
	c.Flush() // the first event of an interval makes its histogram
	if n := testing.AllocsPerRun(10*bufferedSamples, func() {
		c.Success(0, 2, ms)
		c.Error(2, 1213)
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func TestMemoryOf4096Clients(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := NewRecorder([]string{"a", "b", "c"})
	clients := make([]*Client, 4096)
	for i := range clients {
		clients[i] = r.NewClient()
	}
	for s := range int64(maxIntervals) {
		clients[s].Success(0, s*firstWidth, ms)
		clients[s].Flush()
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(clients)
	if mib := (after.HeapAlloc - before.HeapAlloc) >> 20; mib > 64 {
		t.Errorf("%d MiB", mib)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder([]string{"e"})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c := r.NewClient()
		latency := int64(100_000)
		for pb.Next() {
			latency = latency*3%10_000_000 + 1000
			c.Success(0, 1, latency)
		}
		c.Flush()
	})
}
