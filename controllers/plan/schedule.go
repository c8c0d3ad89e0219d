package plan

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

const (
	// latestStart is how late an execution may be started: the restart of a controller
	// costs none, a night without one does.
	latestStart = 5 * time.Minute
	// maxSkipped bounds the times that are counted one by one.
	maxSkipped = 1000
)

// scheduled brings the schedule up to now. It returns the time for which an execution is
// to be started, nil where there is none. A time that cannot be kept is skipped, and the
// status says so: two executions of a benchmark would only wait for each other.
func (n *next) scheduled() *time.Time {
	if n.b.Spec.Schedule == nil {
		n.Status.Schedule = nil
		return nil
	}
	times := timetable(n.b.Spec.Schedule)
	s := n.Status.Schedule
	if s == nil {
		s = &v1alpha1.ScheduleStatus{}
		n.Status.Schedule = s
	}
	var due *time.Time
	if s.NextTime != nil && !n.now.Before(s.NextTime.Time) {
		due = n.settle(s, times)
	}
	if due != nil || s.NextTime == nil || n.b.Generation != n.b.Status.ObservedGeneration || !n.now.Before(s.NextTime.Time) {
		next := metav1.NewTime(times(n.now).UTC())
		s.NextTime = &next
	}
	n.lookAgain(s.NextTime.Sub(n.now))
	return due
}

// settle decides about the times that have come. Only the latest can still be kept.
func (n *next) settle(s *v1alpha1.ScheduleStatus, times func(time.Time) time.Time) *time.Time {
	latest, missed := s.NextTime.Time, int32(0)
	for t := times(latest); !t.After(n.now); t = times(t) {
		latest = t
		if missed++; missed == maxSkipped {
			break
		}
	}
	last := metav1.NewTime(latest.UTC())
	s.LastTime = &last
	reason := n.unableAt(latest)
	if reason == "" {
		s.Skipped, s.SkippedBecause = missed, ""
		if missed > 0 {
			s.SkippedBecause = controllerAway
		}
		return &latest
	}
	s.Skipped += missed + 1
	s.SkippedBecause = reason
	return nil
}

const controllerAway = "the controller did not run at that time"

// unableAt says why no execution can be started for a time, "" where one can.
func (n *next) unableAt(t time.Time) string {
	switch e := n.Status.Execution; {
	case n.now.Sub(t) > latestStart:
		return controllerAway
	case n.b.Spec.Suspend:
		return "spec.suspend was true"
	case e != nil && e.CompletionTime == nil:
		return fmt.Sprintf("the execution %s was still under way", e.ID)
	}
	return ""
}

// timetable gives the time of a schedule that follows another. Expand has checked that
// there is one.
func timetable(s *v1alpha1.Schedule) func(time.Time) time.Time {
	times, err := cronFields.Parse(s.Cron)
	if err != nil {
		times = never{}
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		zone = time.UTC
	}
	return func(t time.Time) time.Time { return times.Next(t.In(zone)) }
}

// never is the timetable of a schedule that cannot be read.
type never struct{}

var _ cron.Schedule = never{}

// Next implements cron.Schedule.
func (never) Next(t time.Time) time.Time { return t.AddDate(100, 0, 0) }
