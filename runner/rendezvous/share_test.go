package rendezvous

import (
	"errors"
	"math/rand/v2"
	"testing"

	"dbbench.dev/operator/runner/contract"
)

// TestDivideIsExact: the shares of any load add up to it, follow each other, and leave
// nobody without work.
func TestDivideIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		replicas := 1 + rng.Int32N(64)
		load := contract.Load{Clients: replicas + rng.Int32N(5000), EventsPerClient: 7, Duration: 9, Warmup: 3}
		if rng.IntN(2) == 0 {
			load.Events = int64(load.Clients) + rng.Int64N(1<<rng.IntN(62))
		}
		if rng.IntN(2) == 0 {
			load.Rate = int64(replicas) + rng.Int64N(100_000)
		}
		var sum contract.Load
		for i := range replicas {
			share, first, err := Divide(load, i, replicas)
			if err != nil {
				t.Fatalf("%+v, %d of %d: %v", load, i, replicas, err)
			}
			if first != int(sum.Clients) {
				t.Fatalf("%+v, %d of %d: begins with client %d, want %d", load, i, replicas, first, sum.Clients)
			}
			if share.Clients < 1 || load.Events > 0 && share.Events < 1 || load.Rate > 0 && share.Rate < 1 {
				t.Fatalf("%+v, %d of %d: a share of %+v", load, i, replicas, share)
			}
			if even := load.Clients / replicas; share.Clients < even || share.Clients > even+1 {
				t.Fatalf("%+v, %d of %d: %d clients", load, i, replicas, share.Clients)
			}
			if share.EventsPerClient != 7 || share.Duration != 9 || share.Warmup != 3 {
				t.Fatalf("%+v: a share of %+v", load, share)
			}
			sum.Clients += share.Clients
			sum.Events += share.Events
			sum.Rate += share.Rate
		}
		if sum.Clients != load.Clients || sum.Events != load.Events || sum.Rate != load.Rate {
			t.Fatalf("%+v over %d replicas adds up to %+v", load, replicas, sum)
		}
	}
}

func TestDivideRefusesEventsForSome(t *testing.T) {
	_, _, err := Divide(contract.Load{Clients: 8, Events: 7}, 0, 2)
	var f *contract.Failure
	if !errors.As(err, &f) || f.Class != contract.ClassInvalidRunSpec || f.Hint == "" {
		t.Errorf("got %v", err)
	}
	if share, _, err := Divide(contract.Load{Clients: 8, Events: 7}, 0, 1); err != nil || share.Events != 7 {
		t.Errorf("of one replica: %+v, %v", share, err)
	}
}
