package plan

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// Refusal is why the API does not take a Job, and since when.
type Refusal struct {
	Err   error
	Since time.Time
}

// refusedFor is how long a Job that is forbidden is tried: rights may come a moment after
// the manager that needs them.
const refusedFor = time.Minute

// GiveUp is the result of a run whose Job the API does not take, nil while that may pass.
func (r *Refusal) GiveUp(now time.Time, spec *v1alpha1.DBBenchmarkSpec, run Run) *results.Envelope {
	reason, limit := r.reason(), RunTimeout(spec)
	switch {
	case apierrors.IsInvalid(r.Err):
		reason, limit = v1alpha1.ReasonPodRejected, 0
	case reason == v1alpha1.ReasonPending && apierrors.IsForbidden(r.Err):
		reason, limit = v1alpha1.ReasonPodRejected, min(limit, refusedFor)
	case reason == v1alpha1.ReasonPending:
		reason = v1alpha1.ReasonRunnerLost
	}
	if now.Sub(r.Since) < limit {
		return nil
	}
	e := Failed(now, run, reason, r.message())
	return &e
}

func (r *Refusal) verdict() verdict { return verdict{isInProgress, r.reason(), r.message()} }

// reason tells a quota by its text: the API has no other sign of it.
func (r *Refusal) reason() string {
	if apierrors.IsForbidden(r.Err) && strings.Contains(r.Err.Error(), "exceeded quota") {
		return v1alpha1.ReasonQuotaExceeded
	}
	return v1alpha1.ReasonPending
}

func (r *Refusal) message() string { return shortened("the API refuses the Job: " + r.Err.Error()) }
