package main

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// state is where a benchmark's execution stands.
type state struct {
	name, namespace string
	reason, message string
	ended           bool
	runs, total     int32
	// fraction is the part that is done, 0 to 1, the run under way included.
	fraction float64
	// rate, in events per second, and p99 are those of the run under way, "" and 0 where
	// they are not known.
	rate string
	p99  time.Duration
	// phase is the part of its work that the run is in, "" where it is not known.
	phase string
}

// stateOf reads the status of a benchmark. What it says of an earlier generation, or of
// the execution stale, is not of interest any more.
func stateOf(b *v1alpha1.DBBenchmark, stale string) state {
	s := state{name: b.Name, namespace: b.Namespace}
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	e := b.Status.Execution
	if ready == nil || b.Status.ObservedGeneration < b.Generation || e != nil && e.ID == stale {
		s.reason, s.message = "Waiting", "for the controller"
		return s
	}
	s.reason, s.message = ready.Reason, ready.Message
	s.ended = failed(b) || holds(b, v1alpha1.ConditionComplete) || suspended(b)
	if e == nil {
		return s
	}
	s.runs, s.total = e.Completed+e.Failed, e.Total
	done := float64(s.runs)
	if a := e.ActiveRun; a != nil && !s.ended {
		s.phase, s.rate, s.p99 = a.Phase, a.EventsPerSecond, time.Duration(a.P99Micros)*time.Microsecond
		if a.PercentDone != nil {
			done += float64(*a.PercentDone) / 100
		}
	}
	if e.Total > 0 {
		s.fraction = min(done/float64(e.Total), 1)
	}
	return s
}

func holds(b *v1alpha1.DBBenchmark, condition string) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, condition)
}

func failed(b *v1alpha1.DBBenchmark) bool { return holds(b, v1alpha1.ConditionFailed) }

// suspended reports whether no run is started or under way because spec.suspend is set.
func suspended(b *v1alpha1.DBBenchmark) bool {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == v1alpha1.ReasonSuspended
}

// verdict is the error that a benchmark's end amounts to, nil where all is well.
func verdict(b *v1alpha1.DBBenchmark) error {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case suspended(b):
		return exit{exitFailed, fmt.Errorf("%s is suspended: kubectl dbbench resume %s goes on, rerun starts anew", b.Name, b.Name)}
	case failed(b):
		return exit{exitFailed, fmt.Errorf("%s failed: %s: %s", b.Name, ready.Reason, ready.Message)}
	case meta.IsStatusConditionFalse(b.Status.Conditions, v1alpha1.ConditionPassed):
		passed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionPassed)
		return exit{exitNotPassed, fmt.Errorf("%s has not passed: %s", b.Name, passed.Message)}
	}
	return nil
}

// rateText is a rate with its unit, such as 1,234/s.
func (s state) rateText() string {
	v, err := strconv.ParseFloat(s.rate, 64)
	if err != nil {
		return ""
	}
	if v < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64) + "/s"
	}
	return results.Group(strconv.FormatFloat(v, 'f', 0, 64)) + "/s"
}

// p99Text is the 99th percentile with three digits and its unit, such as 12.3ms.
func (s state) p99Text() string {
	if s.p99 <= 0 {
		return ""
	}
	unit := time.Microsecond
	for s.p99 >= 1000*unit {
		unit *= 10
	}
	return s.p99.Round(unit).String()
}
