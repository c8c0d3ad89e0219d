// Package controllers runs DBBenchmarks in a cluster. It observes, has package plan
// decide, and does what was decided.
package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

// Secrets are left out on purpose: the kubelet mounts them into the runner.
//
// +kubebuilder:rbac:groups=dbbench.dev,resources=dbbenchmarks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=dbbench.dev,resources=dbbenchmarks/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;create
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler brings DBBenchmarks on.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API itself.
	Live client.Reader
	Logs LogReader
	// Events records what a user should hear of.
	Events events.EventRecorder
	// Image is the runner's, where a benchmark names none.
	Image string
	// Kubernetes is the version of the cluster, for the record.
	Kubernetes string
	// Namespace restricts what is read to one namespace; empty means all.
	Namespace string
	// Now is the clock.
	Now func() time.Time

	servers  locks
	plans    plans
	results  resultCache
	said     memory[seenProgress]
	refusals memory[refusedRun]
}

// maxSteps bounds the decisions of one reconciliation. A run that ends takes three:
// store its result, create the next one's Job, and see that nothing is left to do.
const maxSteps = 10

// Reconcile brings one benchmark as far as it goes without waiting.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := &v1alpha1.DBBenchmark{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, bench: b}
	if idle, again, err := s.idle(ctx); idle || err != nil {
		return ctrl.Result{RequeueAfter: again}, err
	}
	decision, err := s.advance(ctx)
	// The status is written after a failed step too: what was done before it is done.
	if decision != nil {
		if e := s.writeStatus(ctx, decision.Status); e != nil && err == nil {
			err = e
		}
	}
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("somebody else wrote in between, looking again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if r := s.cannotCreate; r != nil && s.Now().Sub(r.Since) > refusedDelay {
		// A quota may be raised at any time: a delay that grows would be in the way.
		log.FromContext(ctx).Info("a Job is still refused", "reason", r.Err.Error())
		return ctrl.Result{RequeueAfter: refusedDelay}, nil
	}
	if err != nil || decision == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: decision.After}, nil
}

const (
	conflictDelay = 100 * time.Millisecond
	refusedDelay  = 10 * time.Second
)

// scope is one benchmark in one reconciliation.
type scope struct {
	*Reconciler
	bench *v1alpha1.DBBenchmark
	// cannotCreate is why the API refused a Job in this reconciliation.
	cannotCreate *plan.Refusal
	// noReport is set where the report cannot be written.
	noReport bool
	// readBaseline is what was read of the baseline, nil while nothing was.
	readBaseline *knownBaseline
	// started is whether a run was started in it.
	started bool
}

// idle reports whether there is nothing to look for: the execution of this very spec
// is over and has left no Job behind. It costs no request. again is when the schedule
// asks for the next look; 0 is never.
func (s *scope) idle(ctx context.Context) (idle bool, again time.Duration, err error) {
	if idle, again = plan.Idle(s.Now(), s.bench); !idle {
		return false, 0, nil
	}
	jobs, err := s.jobs(ctx, s.Client)
	if err != nil || len(jobs) > 0 {
		return false, 0, err
	}
	s.forget(client.ObjectKeyFromObject(s.bench))
	return true, again, nil
}

// advance decides by the cache, and acts only on what the API itself confirms: a stale
// cache can delay a step, but not repeat one. The locks keep two benchmarks from
// finding the same server free. The decision is nil where nothing could be observed.
func (s *scope) advance(ctx context.Context) (*plan.Decision, error) {
	decision, err := s.decide(ctx, false)
	if err != nil || !s.hasWork(decision) {
		return decision, err
	}
	defer s.servers.lock(plan.ServerKeys(s.bench))()
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.bench), s.bench); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for range maxSteps {
		if decision, err = s.decide(ctx, true); err != nil || !s.hasWork(decision) {
			return decision, err
		}
		if err := s.act(ctx, decision); err != nil {
			return s.explain(ctx, decision), err
		}
		switch {
		case decision.Release:
			return nil, nil
		case s.started:
			return decision, nil // its pod tells what comes next
		}
	}
	decision.After = time.Second
	return decision, nil
}

// decide asks what should happen now: by the cache, or live by the API.
func (s *scope) decide(ctx context.Context, live bool) (*plan.Decision, error) {
	observed, err := s.observe(ctx, live)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	decision := plan.Next(s.Now(), s.bench, observed)
	if !live || (decision.Create == nil && len(decision.CleanUp) == 0) {
		return &decision, nil
	}
	// Who loads a server must be alone on it; for all else the cache will do.
	if observed.Occupants, err = s.occupants(ctx, s.Live); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	decision = plan.Next(s.Now(), s.bench, observed)
	return &decision, nil
}

func (s *scope) hasWork(d *plan.Decision) bool { return d.Acts() || d.Begins(s.bench) }

// explain has the status say why a Job could not be created.
func (s *scope) explain(ctx context.Context, d *plan.Decision) *plan.Decision {
	if s.cannotCreate == nil {
		return d
	}
	if explained, err := s.decide(ctx, true); err == nil {
		return explained
	}
	return d
}

// writeStatus writes the status if it is another, and tells of turning points.
func (s *scope) writeStatus(ctx context.Context, status v1alpha1.DBBenchmarkStatus) error {
	before := s.bench.DeepCopy()
	s.bench.Status = status
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	// The difference to what a stale cache holds would be applied to something else.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Status().Patch(ctx, s.bench, patch); err != nil {
		s.bench.Status = before.Status
		return client.IgnoreNotFound(err)
	}
	s.announce(before, s.bench)
	return nil
}
