package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/runner/contract"
)

// maxWritesPerRun is what a run may cost the API server, events aside.
const maxWritesPerRun = 8

func TestComplete(t *testing.T) {
	w := newWorld(t, 1)
	m := w.start(nil, nil)
	const runs = 6
	key := w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Iterations = runs }))
	b := w.complete(key, runs)
	if e := b.Status.Execution; e.Progress != "6/6" || e.Failed != 0 || e.CompletionTime == nil || e.ActiveRun != nil {
		t.Errorf("execution: %+v", e)
	}
	if len(b.Status.Points) != 1 || b.Status.Workload != "slap/Write" || b.Status.Latest == nil || len(b.Status.ResultsConfigMaps) != 1 {
		t.Fatalf("status: %+v", b.Status)
	}
	p := b.Status.Points[0]
	if p.Iterations != runs || p.Events != 100*runs || p.ElapsedSeconds.Average != "1.000" || p.EventsPerSecond.Median != "100.000" || p.LatencyMicros.P50 != 500 {
		t.Errorf("point: %+v, %+v, %+v", p, p.ElapsedSeconds, p.LatencyMicros)
	}
	w.eventually("the last Job is gone", func() bool { return w.jobs(b) == 0 })
	if perRun := float64(m.writes.Load()) / runs; perRun > maxWritesPerRun {
		t.Errorf("%.1f writes to the API for each run, at most %d", perRun, maxWritesPerRun)
	} else {
		t.Logf("%.1f writes and %.1f requests to the API for each run", perRun, float64(m.requests.Load())/runs)
	}
	w.eventually("the events tell of start and end", func() bool {
		var list eventsv1.EventList
		if err := w.List(t.Context(), &list, client.InNamespace(b.Namespace)); err != nil {
			t.Fatal(err)
		}
		reasons := map[string]bool{}
		for _, e := range list.Items {
			reasons[e.Reason] = true
		}
		return reasons["ExecutionStarted"] && reasons["Completed"]
	})
}

func (w *world) jobs(b *v1alpha1.DBBenchmark) int {
	var list batchv1.JobList
	if err := w.List(w.Context(), &list, client.InNamespace(b.Namespace), client.MatchingLabels{resources.LabelUID: string(b.UID)}); err != nil {
		w.Fatal(err)
	}
	return len(list.Items)
}

// TestKilled ends the controller after each of its writes in turn, and starts another
// with a cold cache.
func TestKilled(t *testing.T) {
	writes := killAfterEachWrite(t,
		func(w *world) client.ObjectKey { return w.create(w.bench("bench")) },
		func(w *world, key client.ObjectKey) { w.complete(key, 3) })
	t.Logf("an undisturbed benchmark of 3 runs takes %d writes", writes)
}

// killAfterEachWrite begins a benchmark anew for each write that it takes, ends the
// controller after that write and starts another, and checks what came of it. It returns
// the number of writes.
func killAfterEachWrite(t *testing.T, begin func(*world) client.ObjectKey, check func(*world, client.ObjectKey)) int64 {
	for n := int64(1); ; n++ {
		reached := false
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			w := newWorld(t, 1)
			killed := make(chan struct{})
			first := w.start(nil, func(m *manager) {
				if m.writes.Load() == n {
					close(killed)
					go m.stop()
					// Nothing that comes after the write is to happen.
					<-time.After(50 * time.Millisecond)
				}
			})
			key := begin(w)
			select {
			case <-killed:
				reached = true
				first.stop()
				w.start(nil, nil)
			case <-w.rest(key):
			}
			check(w, key)
		})
		if !reached || t.Failed() {
			return n - 1
		}
	}
}

// rest is closed when a benchmark is complete and has left no Job behind.
func (w *world) rest(key client.ObjectKey) <-chan struct{} {
	rest := make(chan struct{})
	go func() {
		for ; w.Context().Err() == nil; time.Sleep(20 * time.Millisecond) {
			var b v1alpha1.DBBenchmark
			var jobs batchv1.JobList
			if w.Get(w.Context(), key, &b) == nil && meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionComplete) &&
				w.List(w.Context(), &jobs, client.InNamespace(key.Namespace)) == nil && len(jobs.Items) == 0 {
				close(rest)
				return
			}
		}
	}()
	return rest
}

// TestEachWriteFailsOnce has every write refused the first time, with errors in turn.
func TestEachWriteFailsOnce(t *testing.T) {
	gr := schema.GroupResource{Resource: "things"}
	for name, fault := range map[string]error{
		"conflict":          apierrors.NewConflict(gr, "x", errors.New("changed")),
		"timeout":           apierrors.NewTimeoutError("slow", 1),
		"too many requests": apierrors.NewTooManyRequests("busy", 1),
		"forbidden":         apierrors.NewForbidden(gr, "x", errors.New("no")),
		"internal error":    apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			var mu sync.Mutex
			tries := map[string]int{}
			w.start(func(kind string) error {
				mu.Lock()
				defer mu.Unlock()
				if tries[kind]++; tries[kind]%2 == 1 {
					return fault
				}
				return nil
			}, nil)
			w.complete(w.create(w.bench("bench")), 3)
		})
	}
}

// TestStaleCache has a cache that never shows a Job or a pod.
func TestStaleCache(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *batchv1.JobList, *corev1.PodList:
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.complete(w.create(w.bench("bench")), 3)
}

func TestFailures(t *testing.T) {
	failing := func(class contract.Class) func(*contract.RunSpec) ending {
		return func(s *contract.RunSpec) ending {
			return ending{code: 1, log: record(s, func(r *contract.Record) {
				r.Operations = nil
				r.Result = contract.Result{Outcome: contract.OutcomeFailed, Failure: &contract.Failure{
					Class: class, MySQLError: 1045, Message: "Access denied for user 'bench'", Hint: "check the Secret mariadb-bench"}}
			})}
		}
	}
	logging := func(text string) func(*contract.RunSpec) ending {
		return func(*contract.RunSpec) ending { return ending{log: text} }
	}
	lying := func(change func(*contract.Record)) func(*contract.RunSpec) ending {
		return func(s *contract.RunSpec) ending { return ending{log: record(s, change)} }
	}
	waiting := func(reason, warning string) func(*contract.RunSpec) ending {
		return func(*contract.RunSpec) ending {
			return ending{warning: warning, state: &corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}}}
		}
	}
	huge := `{"kind":"start","body":"` + strings.Repeat("x", 9<<20) + "\"}\n"
	for _, tc := range []struct {
		name   string
		end    func(*contract.RunSpec) ending
		clock  time.Duration
		reason string
		says   string
	}{
		{"wrong password", failing(contract.ClassAuthenticationFailed), 0, "AuthenticationFailed", "(MySQL error 1045); check the Secret"},
		{"missing secret", waiting("ContainerCreating", `MountVolume.SetUp failed for volume "credentials" : secret "nobody" not found`), time.Minute, "SecretNotFound", "nobody"},
		{"no image", waiting("ImagePullBackOff", ""), 0, "ImagePullFailed", "runner:test"},
		{"empty log", logging(""), 0, "InvalidRecord", "exit code 0"},
		{"no record in the log", logging("hello\nworld\n"), 0, "InvalidRecord", ""},
		{"half a record", func(s *contract.RunSpec) ending { text := record(s); return ending{log: text[:len(text)/2]} }, 0, "InvalidRecord", ""},
		{"somebody else's record", func(s *contract.RunSpec) ending { o := *s; o.Run.ID = "other"; return ending{log: record(&o)} }, 0, "InvalidRecord", "other"},
		{"endless line", logging(huge), 0, "InvalidRecord", ""},
		{"histogram that is none", lying(func(r *contract.Record) { r.Operations[0].Histogram = "QUJDREVGR0g=" }), 0, "InvalidRecord", "histogram"},
		{"more events than values", lying(func(r *contract.Record) { r.Operations[0].Count, r.Result.Events = 1000, 1000 }), 0, "InvalidRecord", "histogram"},
		{"no time", lying(func(r *contract.Record) { r.Result.ElapsedNanos = 0 }), 0, "InvalidRecord", "time"},
		{"nothing done", lying(func(r *contract.Record) { r.Operations, r.Result.Events = nil, 0 }), 0, "InvalidRecord", "no event"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.kubelet.set(func() { w.kubelet.end = tc.end })
			w.offset.Store(int64(tc.clock))
			w.start(nil, nil)
			key := w.create(w.bench("bench"))
			b := w.until(key, tc.reason)
			failed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed)
			if failed.Status != metav1.ConditionTrue || failed.Reason != tc.reason || !strings.Contains(failed.Message, tc.says) {
				t.Errorf("Failed: %+v", failed)
			}
			if e := b.Status.Execution; e.Failed != 1 || e.Completed != 0 || e.CompletionTime == nil {
				t.Errorf("execution: %+v", e)
			}
			if stored := w.results(b, b.Status.Execution.ID); len(stored) != 1 {
				t.Errorf("%d results", len(stored))
			}
			w.once(b, 1)
		})
	}
}

// TestOnFailure: with Continue the other runs are done; the finished ones stay in any case.
func TestOnFailure(t *testing.T) {
	second := func(s *contract.RunSpec) ending {
		if s.Run.Iteration == 2 {
			return ending{code: 3}
		}
		return ending{log: record(s)}
	}
	for _, tc := range []struct {
		mode      v1alpha1.OnFailure
		reason    string
		completed int32
		runs      int
	}{
		{v1alpha1.OnFailureStop, v1alpha1.ReasonInvalidRecord, 1, 2},
		{v1alpha1.OnFailureContinue, v1alpha1.ReasonRunsFailed, 2, 3},
	} {
		t.Run(string(tc.mode), func(t *testing.T) {
			w := newWorld(t, 1)
			w.kubelet.set(func() { w.kubelet.end = second })
			w.start(nil, nil)
			b := w.until(w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.OnFailure = tc.mode })), tc.reason)
			if e := b.Status.Execution; e.Completed != tc.completed || e.Failed != 1 {
				t.Errorf("execution: %+v", e)
			}
			if p := b.Status.Points[0]; p.Iterations != tc.completed || p.Failed != 1 {
				t.Errorf("point: %+v", p)
			}
			w.once(b, tc.runs)
		})
	}
}

func TestSuspend(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	w.underWay(key)
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Suspend = true })
	w.kubelet.set(func() { w.kubelet.hold = false })
	b := w.until(key, v1alpha1.ReasonSuspended)
	if e := b.Status.Execution; e.Completed != 1 || len(w.kubelet.made(b.UID, e.ID)) != 1 {
		t.Errorf("execution: %+v", e)
	}
	id := b.Status.Execution.ID
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Suspend = false })
	if b = w.complete(key, 3); b.Status.Execution.ID != id {
		t.Error("another execution")
	}
}

func (w *world) underWay(key client.ObjectKey) *v1alpha1.DBBenchmark {
	w.Helper()
	var b *v1alpha1.DBBenchmark
	w.eventually("a run is under way", func() bool {
		b = w.get(key)
		return b.Status.Execution != nil && b.Status.Execution.ActiveRun != nil && len(w.kubelet.made(b.UID, b.Status.Execution.ID)) > 0
	})
	return b
}

// TestSpecChange: a change of the plan ends the execution and starts another; the
// finished runs stay in the ConfigMaps that the history names.
func TestSpecChange(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			w.kubelet.hold = s.Run.Iteration == 1 && s.Load.Clients == 2 // the next run is the last to start
			return ending{log: record(s)}
		}
	})
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	w.eventually("one run is done and one is under way", func() bool {
		e := w.get(key).Status.Execution
		return e != nil && e.Completed == 1 && e.ActiveRun != nil
	})
	old := w.get(key).Status.Execution.ID
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Load.Clients = 3 })
	w.kubelet.set(func() { w.kubelet.hold = false })
	w.eventually("another execution has begun", func() bool {
		e := w.get(key).Status.Execution
		return e != nil && e.ID != old
	})
	b := w.complete(key, 3)
	if len(b.Status.History) != 1 || b.Status.History[0].ID != old || b.Status.History[0].Reason != v1alpha1.ReasonCancelled || b.Status.History[0].Completed != 1 {
		t.Errorf("history: %+v", b.Status.History)
	}
	if len(w.results(b, old)) != 1 {
		t.Error("the earlier results are gone")
	}
	for server, n := range w.kubelet.most {
		if n > 1 {
			t.Errorf("%d runs at the same time on %s", n, server)
		}
	}
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.HistoryLimit = new(int32(1)) })
	w.eventually("the earlier results are gone", func() bool { return len(w.results(b, old)) == 0 })
	if again := w.get(key); again.Status.Execution.ID != b.Status.Execution.ID || len(w.results(b, b.Status.Execution.ID)) != 3 {
		t.Error("the limit of the history touched the execution")
	}
}

func TestInvalidSpec(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	key := w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Prepare = v1alpha1.PrepareNever }))
	b := w.until(key, v1alpha1.ReasonInvalidSpec)
	failed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed)
	if failed.Status != metav1.ConditionTrue || !strings.Contains(failed.Message, "spec.prepare") {
		t.Errorf("Failed: %+v", failed)
	}
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.Prepare = "" })
	w.complete(key, 3)
}

// TestDelete deletes in the midst of a run, and makes the same name again at once.
func TestDelete(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	first := w.underWay(key)
	if err := w.Delete(t.Context(), w.get(key)); err != nil {
		t.Fatal(err)
	}
	w.eventually("its Job is gone", func() bool {
		return w.jobs(first) == 0 || w.kubelet.made(first.UID, "cleanup")["cleanup-mariadb"] == 1
	})
	w.kubelet.set(func() { w.kubelet.hold = false })
	w.eventually("the resource is gone", func() bool {
		var b v1alpha1.DBBenchmark
		return apierrors.IsNotFound(w.Get(t.Context(), key, &b))
	})
	if n := w.kubelet.made(first.UID, "cleanup")["cleanup-mariadb"]; n != 1 {
		t.Errorf("%d clean-ups", n)
	}
	second := w.complete(w.create(w.bench("bench")), 3)
	if second.Status.Execution.ID == first.Status.Execution.ID {
		t.Error("two resources share an execution")
	}
}

// TestDeleteNeverBlocks: a clean-up that does not end is not waited for.
func TestDeleteNeverBlocks(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	first := w.underWay(key)
	if err := w.Delete(t.Context(), w.get(key)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the clean-up is under way", func() bool { return w.kubelet.made(first.UID, "cleanup")["cleanup-mariadb"] == 1 })
	w.offset.Store(int64(10 * time.Minute))
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Annotations = map[string]string{"wake": "up"} })
	w.eventually("the resource is gone", func() bool {
		var b v1alpha1.DBBenchmark
		return apierrors.IsNotFound(w.Get(t.Context(), key, &b))
	})
}

// TestQueue: benchmarks of two namespaces and three spellings of one server are run one
// after the other, as they came.
func TestQueue(t *testing.T) {
	w := newWorld(t, 2)
	ns := w.namespaces[0]
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	var keys []client.ObjectKey
	for i, host := range []string{"db", "db." + ns, "DB." + ns + ".svc.cluster.local."} {
		b := w.bench(fmt.Sprintf("bench-%d", i), func(b *v1alpha1.DBBenchmark) {
			b.Namespace, b.Spec.Targets[0].Host = w.namespaces[min(i, 1)], strings.TrimSuffix(host, ".")
		})
		keys = append(keys, w.create(b))
		if i == 0 {
			w.underWay(keys[0])
			continue
		}
		b = w.until(keys[i], v1alpha1.ReasonTargetBusy)
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if want := fmt.Sprintf("%s/bench-0 holds the server; this is number %d in the queue", ns, i+1); ready.Message != want {
			t.Errorf("%q, want %q", ready.Message, want)
		}
		time.Sleep(1100 * time.Millisecond) // times in a status are whole seconds
	}
	w.kubelet.set(func() { w.kubelet.hold = false })
	var ends []time.Time
	for _, key := range keys {
		w.complete(key, 3)
		ends = append(ends, w.firstCreation(key))
	}
	if !ends[0].Before(ends[1]) || ends[2].Before(ends[1]) {
		t.Errorf("first results at %v", ends)
	}
	if len(w.kubelet.most) != 1 {
		t.Errorf("the spellings count as %d servers", len(w.kubelet.most))
	}
	for _, n := range w.kubelet.most {
		if n != 1 {
			t.Errorf("%d runs at the same time on the server", n)
		}
	}
}

// firstCreation is when a benchmark's first result was stored.
func (w *world) firstCreation(key client.ObjectKey) time.Time {
	w.Helper()
	var list corev1.ConfigMapList
	if err := w.List(w.Context(), &list, client.InNamespace(key.Namespace), client.MatchingLabels{resources.LabelUID: string(w.get(key).UID)}); err != nil {
		w.Fatal(err)
	}
	return list.Items[0].CreationTimestamp.Time
}

// TestLongNames: a name of 253 characters with dots.
func TestLongNames(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	name := strings.Repeat("very.long-name.", 16) + "with-253-chars"
	name = name[:253-len("end")] + "end"
	if len(name) > 253 {
		t.Fatal(len(name))
	}
	w.complete(w.create(w.bench(name, func(b *v1alpha1.DBBenchmark) { b.Spec.Targets[0].Name = strings.Repeat("t", 63) })), 3)
}

// TestJobDeleted: a Job that a user deletes takes its run with it, and is not run again.
func TestJobDeleted(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	b := w.underWay(key)
	var jobs batchv1.JobList
	if err := w.List(t.Context(), &jobs, client.InNamespace(b.Namespace)); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), &jobs.Items[0], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.once(w.until(key, v1alpha1.ReasonRunnerLost), 1)
}

// TestStatusLost: who clears the status loses no result and repeats no run.
func TestStatusLost(t *testing.T) {
	w := newWorld(t, 1)
	m := w.start(nil, nil)
	key := w.create(w.bench("bench"))
	before := w.complete(key, 3)
	m.stop()
	b := w.get(key)
	clean := b.DeepCopy()
	clean.Status = v1alpha1.DBBenchmarkStatus{}
	if err := w.Status().Patch(t.Context(), clean, client.MergeFrom(b)); err != nil {
		t.Fatal(err)
	}
	w.start(nil, nil)
	after := w.complete(key, 3)
	if after.Status.Execution.ID != before.Status.Execution.ID {
		t.Error("another execution")
	}
}

// TestShards: results that one ConfigMap has no room for go to several.
func TestShards(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			return ending{log: record(s, func(r *contract.Record) {
				for i := range 60 {
					r.Operations = append(r.Operations, contract.Operation{Name: fmt.Sprintf("idle-%d-%s", i, strings.Repeat("x", 200)), Histogram: strings.Repeat("QUJD", 2000)})
				}
			})}
		}
	})
	w.start(nil, nil)
	b := w.complete(w.create(w.bench("bench")), 3)
	if len(b.Status.ResultsConfigMaps) != 3 {
		t.Errorf("ConfigMaps: %v", b.Status.ResultsConfigMaps)
	}
}

// TestRestricted holds the pods to Pod Security's restricted profile and to having no
// token.
func TestRestricted(t *testing.T) {
	w := newWorld(t, 1)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespaces[0]}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))
	if err := w.Patch(t.Context(), ns, patch); err != nil {
		t.Fatal(err)
	}
	w.start(nil, nil)
	w.complete(w.create(w.bench("bench")), 3)
}

// TestIdleCostsNothing: a benchmark at rest is not looked at again, and a look at it
// asks the API nothing.
func TestIdleCostsNothing(t *testing.T) {
	w := newWorld(t, 1)
	m := w.start(nil, nil)
	key := w.create(w.bench("bench"))
	b := w.complete(key, 3)
	w.eventually("the last Job is gone", func() bool { return w.jobs(b) == 0 })
	w.eventually("the controller comes to rest", func() bool {
		before := m.requests.Load()
		time.Sleep(300 * time.Millisecond)
		return m.requests.Load() == before
	})
	before := m.requests.Load()
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Annotations = map[string]string{"look": "here"} })
	time.Sleep(2 * time.Second)
	if n := m.requests.Load() - before; n != 0 {
		t.Errorf("%d requests while at rest", n)
	}
}
