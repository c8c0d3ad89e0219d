package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

// announce tells of the turning points between two states of a benchmark. There are
// few: a run that succeeds is none.
func (s *scope) announce(before, after *v1alpha1.DBBenchmark) {
	then, now := before.Status.Execution, after.Status.Execution
	started := now != nil && (then == nil || then.ID != now.ID)
	if then != nil && then.CompletionTime == nil && (started || now == nil) {
		s.tell("Cancelled", "Cancel", "the execution %s ended after %s runs: %s", then.ID, then.Progress, cancelledBy(now))
	}
	if started {
		s.tell("ExecutionStarted", "Start", "the execution %s of %d runs is queued", now.ID, now.Total)
	}
	s.announceSkipped(before.Status.Schedule, after.Status.Schedule)
	s.announceVerdict(before, after)
	ready := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready != nil && changed(before, ready):
		s.announceReady(ready, meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionFailed))
	case now != nil && then != nil && now.ID == then.ID && now.Failed > then.Failed:
		s.warn("RunFailed", "Run", "%d of %d runs have failed", now.Failed, now.Total)
	}
}

// cancelledBy is why an execution ended before its time.
func cancelledBy(now *v1alpha1.Execution) string {
	if now != nil && now.Trigger == v1alpha1.TriggerRequest {
		return "another was requested"
	}
	return "the spec changed"
}

// announceSkipped tells of scheduled times that have passed without an execution.
func (s *scope) announceSkipped(then, now *v1alpha1.ScheduleStatus) {
	if now != nil && now.Skipped > 0 && (then == nil || !then.LastTime.Equal(now.LastTime)) {
		s.warn("ScheduleSkipped", "Schedule", "%d scheduled times were skipped, the latest because %s", now.Skipped, now.SkippedBecause)
	}
}

// announceVerdict tells of thresholds that are not met.
func (s *scope) announceVerdict(before, after *v1alpha1.DBBenchmark) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionPassed)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPassed)
	if now != nil && now.Status == metav1.ConditionFalse && (was == nil || was.Status != now.Status || was.Message != now.Message) {
		// An event has room for 1,024 bytes.
		s.warn(now.Reason, "Judge", "%.900s", now.Message)
	}
}

// announceReady tells of a new reason of the condition Ready.
func (s *scope) announceReady(ready *metav1.Condition, failed bool) {
	switch {
	case failed:
		s.warn(ready.Reason, "Fail", "%s", ready.Message)
	case ready.Reason == v1alpha1.ReasonComplete:
		s.tell("Completed", "Complete", "%s", ready.Message)
	case ready.Reason == v1alpha1.ReasonTargetBusy, ready.Reason == v1alpha1.ReasonSuspended:
		s.tell(ready.Reason, "Wait", "%s", ready.Message)
	case ready.Reason == v1alpha1.ReasonUnschedulable, ready.Reason == v1alpha1.ReasonQuotaExceeded:
		s.warn(ready.Reason, "Wait", "%s", ready.Message)
	}
}

func changed(before *v1alpha1.DBBenchmark, ready *metav1.Condition) bool {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	return was == nil || was.Reason != ready.Reason
}

func (s *scope) tell(reason, action, format string, args ...any) {
	s.Events.Eventf(s.bench, nil, corev1.EventTypeNormal, reason, action, format, args...)
}

func (s *scope) warn(reason, action, format string, args ...any) {
	s.Events.Eventf(s.bench, nil, corev1.EventTypeWarning, reason, action, format, args...)
}
