package results

import (
	"fmt"
	"slices"
	"time"

	"dbbench.dev/operator/runner/contract"
)

const (
	// cpuLimit is the use of its processors, in percent, above which a load generator
	// is suspected to be the bottleneck.
	cpuLimit = 90
	// throttledLimit is the part of a run's time in percent that the runner was held back
	// for, above which its numbers are suspect.
	throttledLimit = 1
	// skewLimit is the difference of the replicas' starts in percent of the run's time.
	skewLimit = 1
	// overlapLimit is the part of a run in percent that all replicas should have measured in.
	overlapLimit = 90
	// maxWarnings bounds those of a point.
	maxWarnings = 8
)

// warnings gathers what is to be said of a point: texts, each once, and of figures the
// worst, in percent.
type warnings struct {
	all                             []string
	cpu, throttled, skew, noOverlap float64
}

func (w *warnings) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.all, text) {
		w.all = append(w.all, text)
	}
}

// addRun takes what a run's records tell.
func (w *warnings) addRun(run Envelope) {
	for _, r := range run.Records {
		for _, text := range r.Result.Warnings {
			w.add("%s", text)
		}
		w.throttled = max(w.throttled, percent(r.Environment.Runner.ThrottledNanos, r.Result.ElapsedNanos))
	}
	w.cpu = max(w.cpu, cpuPercent(run.Records))
	w.skew = max(w.skew, percent(StartSkew(run.Records), int64(elapsed(run))))
	if run.Window != nil {
		w.noOverlap = max(w.noOverlap, 100-percent(run.Window.WidthNanos, int64(elapsed(run))))
	}
}

func (w *warnings) addSpread(percent float64, limit int32) {
	if percent > float64(limit) {
		w.add("unstable: throughput spreads by %.0f %% over the iterations, more than %d %%", percent, limit)
	}
}

// texts are all that is to be said of a point, the gravest first.
func (w *warnings) texts(p Point) []string {
	figures := warnings{}
	if w.cpu > cpuLimit {
		figures.add("the load generator used %.0f %% of its processors: the server may be faster than this shows; give the runner more CPU or more replicas", w.cpu)
	}
	if w.throttled > throttledLimit {
		figures.add("the runner was throttled by its CPU limit for %.0f %% of the time: the server may be faster than this shows", w.throttled)
	}
	if p.Dropped > 0 {
		figures.add("%d arrivals could not be started in time and were dropped: the rate was not reached", p.Dropped)
	}
	if w.skew > skewLimit {
		figures.add("the replicas started apart, by up to %.1f %% of the run", w.skew)
	}
	if w.noOverlap > 100-overlapLimit {
		figures.add("the replicas measured together for %.0f %% of the run only", 100-w.noOverlap)
	}
	all := append(figures.all, w.all...)
	return all[:min(len(all), maxWarnings)]
}

func percent(part, of int64) float64 { return 100 * float64(max(part, 0)) / float64(max(of, 1)) }

// cpuPercent is the use that a run's load generator made of the processors that it
// could have used: of the replica that used most. The limit of its container counts
// where that is less than the machine has.
func cpuPercent(records []contract.Record) (most float64) {
	for _, r := range records {
		u := r.Environment.Runner
		available := float64(max(u.GOMAXPROCS, 1))
		if u.Cores > 0 {
			available = min(available, float64(u.Cores))
		}
		if u.CPULimitMilli > 0 {
			available = min(available, float64(u.CPULimitMilli)/1000)
		}
		used := time.Duration(u.CPUUserNanos + u.CPUSystemNanos).Seconds()
		elapsed := time.Duration(max(r.Result.ElapsedNanos, 1)).Seconds()
		most = max(most, 100*used/(elapsed*available))
	}
	return most
}
