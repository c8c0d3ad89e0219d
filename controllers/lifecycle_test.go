package controllers

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/runner/contract"
)

// twoTargets has a benchmark load two datasets on two servers.
func twoTargets(b *v1alpha1.DBBenchmark) {
	second := b.Spec.Targets[0]
	second.Name, second.Host = "mysql", "mysql"
	b.Spec.Targets = append(b.Spec.Targets, second)
	b.Spec.Workload = v1alpha1.Workload{OLTP: &v1alpha1.OLTP{}}
	b.Spec.Iterations = 1
	b.Spec.Sweep = &v1alpha1.Sweep{Axes: []v1alpha1.Axis{{Path: "workload.oltp.tables", Values: numbers(1, 4)}}}
}

// TestDatasetsOnTargets: each dataset is dropped on each target when its last run there is
// over, and the runs themselves drop nothing.
func TestDatasetsOnTargets(t *testing.T) {
	w := newWorld(t, 1)
	var specs []string
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			specs = append(specs, fmt.Sprintf("%s %d %s %s", s.Target.Name, s.Workload.OLTP.Tables, s.Prepare, s.Cleanup))
			return ending{log: record(s, func(r *contract.Record) { r.Result.Checks = map[string]string{"contentSHA256": s.Target.Name} })}
		}
	})
	w.start(nil, nil)
	b := w.until(w.create(w.bench("bench", twoTargets)), v1alpha1.ReasonComplete)
	w.kubelet.set(func() {
		want := "mariadb 1 PerDataset Never, mysql 1 PerDataset Never, mariadb 1 PerDataset Never, mariadb 4 PerDataset Never, mysql 1 PerDataset Never, mysql 4 PerDataset Never, mariadb 4 PerDataset Never, mysql 4 PerDataset Never"
		if got := strings.Join(specs, ", "); got != want {
			t.Errorf("runs and clean-ups:\ngot  %s\nwant %s", got, want)
		}
	})
	made := w.kubelet.made(b.UID, b.Status.Execution.ID)
	if len(made) != 6 || made["cleanup-mariadb"] != 2 || made["cleanup-mysql"] != 2 {
		t.Errorf("Jobs: %v", made)
	}
	if len(b.Status.Points) != 4 {
		t.Fatalf("points: %+v", b.Status.Points)
	}
	for _, p := range b.Status.Points {
		if p.ContentIdentical == nil || *p.ContentIdentical || len(p.Warnings) == 0 {
			t.Errorf("point: %+v", p)
		}
	}
	w.eventually("the last Job is gone", func() bool { return w.jobs(b) == 0 })
}

// TestKilledWithDatasets ends the controller after each of its writes in turn: still each
// run is started once, and each dataset is dropped.
func TestKilledWithDatasets(t *testing.T) {
	begin := func(w *world) client.ObjectKey {
		return w.create(w.bench("bench", twoTargets, func(b *v1alpha1.DBBenchmark) { b.Spec.Targets = b.Spec.Targets[:1] }))
	}
	killAfterEachWrite(t, begin, func(w *world, key client.ObjectKey) {
		b := w.until(key, v1alpha1.ReasonComplete)
		made := w.kubelet.made(b.UID, b.Status.Execution.ID)
		if len(w.results(b, b.Status.Execution.ID)) != 2 || len(made) != 3 {
			w.Errorf("Jobs: %v", made)
		}
		for run, n := range made {
			if want := map[bool]int{true: 2, false: 1}[strings.HasPrefix(run, "cleanup-")]; n != want {
				w.Errorf("%s was started %d times", run, n)
			}
		}
	})
}

// TestReplicas: the pods of a run find each other by a Service, and their reports make one
// result.
func TestReplicas(t *testing.T) {
	const replicas = 3
	w := newWorld(t, 1)
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			return ending{replica: func(index int) ending {
				return ending{log: record(s, func(r *contract.Record) {
					r.Start.Replica = int32(index)
					r.Result.MeasureStartUnixNanos += int64(index) * 2_000_000
				})}
			}}
		}
	})
	w.start(nil, nil)
	b := w.complete(w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Runner.Replicas, b.Spec.Load.Clients = replicas, 6 })), 3)
	for run, e := range w.results(b, b.Status.Execution.ID) {
		if len(e.Records) != replicas || e.Records[2].Start.Replica != 2 {
			t.Errorf("%s: %d records", run, len(e.Records))
		}
	}
	if p := b.Status.Points[0]; p.Events != 3*replicas*100 || p.EventsPerSecond.Median != "300.000" || p.StartSkewMicros != 4000 {
		t.Errorf("point: %+v", p)
	}
	var services corev1.ServiceList
	if err := w.List(t.Context(), &services, client.InNamespace(b.Namespace), client.MatchingLabels{resources.LabelUID: string(b.UID)}); err != nil {
		t.Fatal(err)
	}
	if len(services.Items) != 1 || services.Items[0].Spec.ClusterIP != corev1.ClusterIPNone || len(services.Items[0].OwnerReferences) != 1 {
		t.Errorf("Services: %+v", services.Items)
	}
}

// TestReplicaLost: one pod that ends badly ends the run, with its own reason.
func TestReplicaLost(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			return ending{replica: func(index int) ending {
				class := contract.ClassPeerFailed
				if index == 1 {
					class = contract.ClassWorkloadFailed
				}
				return ending{code: 1, log: record(s, func(r *contract.Record) {
					r.Start.Replica = int32(index)
					r.Result.Outcome, r.Result.Failure = contract.OutcomeFailed, &contract.Failure{Class: class, Message: "replica " + fmt.Sprint(index)}
				})}
			}}
		}
	})
	w.start(nil, nil)
	b := w.until(w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Runner.Replicas, b.Spec.Load.Clients = 3, 3 })), v1alpha1.ReasonWorkloadFailed)
	if ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, "replica 1") {
		t.Errorf("Ready: %+v", ready)
	}
}

// TestRetry: a run whose pod was evicted is repeated, and counted once.
func TestRetry(t *testing.T) {
	w := newWorld(t, 1)
	evictions := 0
	w.kubelet.set(func() {
		w.kubelet.end = func(s *contract.RunSpec) ending {
			if s.Run.Iteration == 2 && evictions < 2 {
				evictions++
				return ending{code: 137, disruption: "EvictionByEvictionAPI"}
			}
			return ending{log: record(s)}
		}
	})
	w.start(nil, nil)
	b := w.until(w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) { b.Spec.Retries = 2 })), v1alpha1.ReasonComplete)
	made := w.kubelet.made(b.UID, b.Status.Execution.ID)
	if made["p0001-mariadb-i2"] != 3 || made["p0001-mariadb-i1"] != 1 || b.Status.Execution.Completed != 3 || b.Status.Execution.Failed != 0 {
		t.Errorf("Jobs: %v, execution: %+v", made, b.Status.Execution)
	}
	if p := b.Status.Points[0]; p.Iterations != 3 || p.Failed != 0 || p.Events != 300 {
		t.Errorf("point: %+v", p)
	}
}

// TestRequested: the annotation starts another execution; the earlier results stay.
func TestRequested(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	first := w.complete(key, 3)
	w.eventually("the last Job is gone", func() bool { return w.jobs(first) == 0 })
	w.change(key, func(b *v1alpha1.DBBenchmark) {
		b.Annotations = map[string]string{v1alpha1.AnnotationRunRequestedAt: "2026-12-01T00:00:00Z"}
	})
	w.eventually("another execution is over", func() bool {
		e := w.get(key).Status.Execution
		return e.ID != first.Status.Execution.ID && e.CompletionTime != nil
	})
	second := w.complete(key, 3)
	if e := second.Status.Execution; e.Trigger != v1alpha1.TriggerRequest || second.Status.LastRunRequest == "" || second.Generation != first.Generation {
		t.Errorf("execution: %+v", e)
	}
	if h := second.Status.History; len(h) != 1 || h[0].Reason != v1alpha1.ReasonComplete || len(w.results(second, h[0].ID)) != 3 {
		t.Errorf("history: %+v", h)
	}
}

// TestScheduled: an execution starts at its time, and a benchmark at rest is woken for it.
func TestScheduled(t *testing.T) {
	w := newWorld(t, 1)
	w.start(nil, nil)
	// Soon, as the API server's clock is not the test's.
	soon := time.Now().Add(2 * time.Minute).UTC()
	key := w.create(w.bench("bench", func(b *v1alpha1.DBBenchmark) {
		b.Spec.Schedule = &v1alpha1.Schedule{Cron: fmt.Sprintf("%d %d * * *", soon.Minute(), (soon.Hour()+9)%24), TimeZone: "Asia/Tokyo"}
	}))
	first := w.complete(key, 3)
	if first.Status.Schedule == nil || !first.Status.Schedule.NextTime.Equal(&metav1.Time{Time: soon.Truncate(time.Minute)}) {
		t.Fatalf("schedule: %+v", first.Status.Schedule)
	}
	w.eventually("the last Job is gone", func() bool { return w.jobs(first) == 0 })
	w.offset.Store(int64(time.Until(first.Status.Schedule.NextTime.Time) + time.Second))
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Labels = map[string]string{"wake": "up"} })
	w.eventually("another execution is over", func() bool {
		e := w.get(key).Status.Execution
		return e.ID != first.Status.Execution.ID && e.CompletionTime != nil
	})
	second := w.complete(key, 3)
	if e := second.Status.Execution; e.Trigger != v1alpha1.TriggerSchedule || !second.Status.Schedule.LastTime.Equal(first.Status.Schedule.NextTime) {
		t.Errorf("execution: %+v, schedule %+v", e, second.Status.Schedule)
	}
}

// TestLiveProgress: the status tells how far the run under way is.
func TestLiveProgress(t *testing.T) {
	w := newWorld(t, 1)
	w.kubelet.set(func() { w.kubelet.hold = true })
	w.start(nil, nil)
	key := w.create(w.bench("bench"))
	b := w.underWay(key)
	var jobs batchv1.JobList
	if err := w.List(t.Context(), &jobs, client.InNamespace(b.Namespace)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := contract.NewEncoder(&text).Progress(contract.Progress{Phase: contract.PhaseMeasure, PercentDone: 40, EventsPerSecondMilli: 1234567, P99Nanos: 2_000_000}); err != nil {
		t.Fatal(err)
	}
	w.kubelet.set(func() { w.kubelet.tails[jobs.Items[0].Name+"-0"] = text.String() })
	w.offset.Store(int64(20 * time.Second))
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Labels = map[string]string{"wake": "up"} })
	w.eventually("the status tells", func() bool {
		a := w.get(key).Status.Execution.ActiveRun
		return a != nil && a.PercentDone != nil && *a.PercentDone == 40 && a.Phase == "Measure" && a.EventsPerSecond == "1234.567" && a.P99Micros == 2000
	})
	w.kubelet.set(func() { w.kubelet.hold = false })
	w.complete(key, 3)
}

// TestQuotaOnJobs: a Job that a ResourceQuota forbids is waited for, in words, and goes on
// when the quota is raised.
func TestQuotaOnJobs(t *testing.T) {
	w := newWorld(t, 1)
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("exceeded quota: small, requested: count/jobs.batch=1"))
	var raised atomic.Bool
	w.start(func(kind string) error {
		if kind == "create *v1.Job" && !raised.Load() {
			return refused
		}
		return nil
	}, nil)
	key := w.create(w.bench("bench"))
	b := w.until(key, v1alpha1.ReasonQuotaExceeded)
	if ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, "count/jobs.batch") {
		t.Errorf("Ready: %+v", ready)
	}
	raised.Store(true)
	w.complete(key, 3)
}

// TestJobForbidden: a Job that is forbidden for good ends the execution.
func TestJobForbidden(t *testing.T) {
	w := newWorld(t, 1)
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", errors.New("denied by policy"))
	w.start(func(kind string) error {
		if kind == "create *v1.Job" {
			w.offset.Add(int64(30 * time.Second))
			return refused
		}
		return nil
	}, nil)
	b := w.until(w.create(w.bench("bench")), v1alpha1.ReasonPodRejected)
	if e := b.Status.Execution; e.Failed != 1 || e.CompletionTime == nil {
		t.Errorf("execution: %+v", e)
	}
}
