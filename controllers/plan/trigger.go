package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/api/v1alpha1"
)

// start is what an execution is started by.
type start struct {
	trigger v1alpha1.Trigger
	// token tells it from others of the same spec.
	token string
}

// startWanted is what asks for another execution, if anything does.
func startWanted(b *v1alpha1.DBBenchmark, scheduled *time.Time) (start, bool) {
	switch {
	case specChanged(b):
		return start{trigger: v1alpha1.TriggerSpec}, true
	case requested(b):
		return start{v1alpha1.TriggerRequest, requestOf(b)}, true
	case scheduled != nil:
		return start{v1alpha1.TriggerSchedule, scheduled.UTC().Format(time.RFC3339)}, true
	}
	return start{}, false
}

// specChanged reports whether the spec asks for another execution than the one on
// record.
//
// A generation that has been seen asks for nothing new, whatever its digest is: the
// fields that a newer version of the resource adds, or a newer version of Hash, change
// the digest of a spec that nobody has touched. The generation alone would not do:
// suspending, or a new threshold, changes it as well.
func specChanged(b *v1alpha1.DBBenchmark) bool {
	e := b.Status.Execution
	return e == nil || b.Generation != b.Status.ObservedGeneration && e.PlanHash != Hash(&b.Spec)
}

func requested(b *v1alpha1.DBBenchmark) bool {
	request := requestOf(b)
	return request != "" && request != b.Status.LastRunRequest
}

// requestOf is the latest request for an execution. What it says does not matter, only
// that it is another than before.
func requestOf(b *v1alpha1.DBBenchmark) string {
	const enough = 253
	return Shorten(b.Annotations[v1alpha1.AnnotationRunRequestedAt], enough)
}

// ExecutionID is the id of the execution that is on record for the spec or, where there
// is none, of the one that it asks for. It is the same again after the status was lost,
// so that the results are found.
func ExecutionID(b *v1alpha1.DBBenchmark) string {
	if specChanged(b) {
		return newID(b, start{trigger: v1alpha1.TriggerSpec})
	}
	return b.Status.Execution.ID
}

// newID is that of an execution which is to be started. No earlier one that is known
// has it: a request can be made twice with the same words.
func newID(b *v1alpha1.DBBenchmark, s start) string {
	text := fmt.Sprintf("%s/%d/%s", b.UID, b.Generation, Hash(&b.Spec))
	if s.token != "" {
		text += "/" + s.token
	}
	for {
		sum := sha256.Sum256([]byte(text))
		id := hex.EncodeToString(sum[:4])
		known := func(h v1alpha1.ExecutionSummary) bool { return h.ID == id }
		if e := b.Status.Execution; (e == nil || e.ID != id) && !slices.ContainsFunc(b.Status.History, known) {
			return id
		}
		text += "+"
	}
}

// begin starts an execution.
func (n *next) begin(s start) {
	total := int32(len(n.o.Runs))
	n.Status.Execution = &v1alpha1.Execution{
		ID: newID(n.b, s), Trigger: s.trigger, Generation: n.b.Generation, PlanHash: Hash(&n.b.Spec),
		StartTime: metav1.NewTime(n.now).Rfc3339Copy(), Total: total, Progress: fmt.Sprintf("0/%d", total),
	}
	// Whatever started it, it runs what was asked for by now.
	n.Status.LastRunRequest = requestOf(n.b)
}

// Idle reports whether there is nothing to do for a benchmark that has left no Job
// behind, and when to look again; 0 is never.
func Idle(now time.Time, b *v1alpha1.DBBenchmark) (idle bool, again time.Duration) {
	e := b.Status.Execution
	if !b.DeletionTimestamp.IsZero() || e == nil || e.CompletionTime == nil || b.Status.ObservedGeneration != b.Generation ||
		requested(b) && !b.Spec.Suspend {
		return false, 0
	}
	if b.Spec.Schedule == nil {
		return b.Status.Schedule == nil, 0
	}
	if b.Status.Schedule == nil || b.Status.Schedule.NextTime == nil {
		return false, 0
	}
	again = b.Status.Schedule.NextTime.Sub(now)
	return again > 0, max(again, 0)
}

// Hash is a digest of the part of a spec that decides what is run. A change elsewhere
// (suspend, thresholds, limits, the schedule) starts no execution. Fields that have
// their default count as absent, so that one which a later version of the resource adds
// leaves the digests of earlier specs as they are.
func Hash(spec *v1alpha1.DBBenchmarkSpec) string {
	s := spec.DeepCopy()
	s.Suspend, s.Schedule, s.HistoryLimit = false, nil, nil
	s.Thresholds, s.Baseline, s.MaxSpreadPercent = nil, nil, nil
	s.Cleanup, s.OnFailure, s.Retries, s.RunTimeout = "", "", 0, nil
	tree, err := toTree(s)
	if err == nil {
		tree = specSchema().withoutDefaults(tree)
	}
	text, encodeErr := json.Marshal(tree)
	if err != nil || encodeErr != nil {
		// Only values that are no JSON fail, which no spec from an API server has. Expand
		// refuses them; here they are as good as any other value.
		text = fmt.Appendf(nil, "%v %v", err, encodeErr)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
