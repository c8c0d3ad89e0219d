package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

// phase is what the conditions say in common.
type phase int

const (
	isInProgress phase = iota
	isSuspended
	isComplete
	isFailed
)

// conditionStatuses are the conditions of each phase. Ready, Reconciling and Stalled
// follow kstatus; a condition is true exactly where what its type says is so.
var conditionStatuses = map[phase]map[string]metav1.ConditionStatus{
	isInProgress: {
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionReconciling: metav1.ConditionTrue, v1alpha1.ConditionStalled: metav1.ConditionFalse,
		v1alpha1.ConditionComplete: metav1.ConditionFalse, v1alpha1.ConditionFailed: metav1.ConditionFalse,
	},
	isSuspended: {
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionReconciling: metav1.ConditionFalse, v1alpha1.ConditionStalled: metav1.ConditionFalse,
		v1alpha1.ConditionComplete: metav1.ConditionFalse, v1alpha1.ConditionFailed: metav1.ConditionFalse,
	},
	isComplete: {
		v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionReconciling: metav1.ConditionFalse, v1alpha1.ConditionStalled: metav1.ConditionFalse,
		v1alpha1.ConditionComplete: metav1.ConditionTrue, v1alpha1.ConditionFailed: metav1.ConditionFalse,
	},
	isFailed: {
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionReconciling: metav1.ConditionFalse, v1alpha1.ConditionStalled: metav1.ConditionTrue,
		v1alpha1.ConditionComplete: metav1.ConditionFalse, v1alpha1.ConditionFailed: metav1.ConditionTrue,
	},
}

// verdict is what a status says in a word and a sentence.
type verdict struct {
	phase           phase
	reason, message string
}

// set writes the verdict to a status as conditions.
func (v verdict) set(now time.Time, generation int64, s *v1alpha1.DBBenchmarkStatus) {
	for _, t := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed,
	} {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: t, Status: conditionStatuses[v.phase][t], Reason: v.reason, Message: v.message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
}

// failure is why an execution failed, empty where it did not.
func (v verdict) failure() string {
	if v.phase != isFailed {
		return ""
	}
	return v.reason + ": " + v.message
}

// verdictOf reads the verdict with which an execution ended from its status.
func verdictOf(s *v1alpha1.DBBenchmarkStatus) verdict {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
		return verdict{isFailed, c.Reason, c.Message}
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionComplete); c != nil && c.Status == metav1.ConditionTrue {
		return verdict{isComplete, c.Reason, c.Message}
	}
	return verdict{isFailed, v1alpha1.ReasonCancelled, "the execution ended, but its conditions are lost"}
}
