package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// situation is a benchmark of the runs r1, r2 and r3, and what was seen of it.
type situation struct {
	b *v1alpha1.DBBenchmark
	o Observed
}

// underWayAt makes a situation in which the execution has begun and is protected.
func newSituation(change ...func(*situation)) *situation {
	s := &situation{b: &v1alpha1.DBBenchmark{}}
	s.b.Namespace, s.b.Name, s.b.UID, s.b.Generation = "team", "bench", "uid-1", 1
	s.b.CreationTimestamp = metav1.NewTime(t0)
	s.b.Finalizers = []string{Finalizer}
	s.b.Spec.Targets = []v1alpha1.Target{{Name: "m", Host: "m"}}
	s.b.Spec.Workload.Slap = &v1alpha1.Slap{}
	for _, id := range []string{"r1", "r2", "r3"} {
		s.o.Runs = append(s.o.Runs, Run{ID: id, Point: "p-" + id, Target: "m", Iteration: 1})
	}
	s.o.Results = map[string]results.Envelope{}
	s.o.NoReport = true // see TestReport
	s.b.Status.Execution = &v1alpha1.Execution{
		ID: ExecutionID(s.b), Generation: 1, PlanHash: Hash(&s.b.Spec), StartTime: metav1.NewTime(t0), Total: 3, Progress: "0/3",
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func fresh(s *situation) { s.b.Status = v1alpha1.DBBenchmarkStatus{}; s.b.Finalizers = nil }

func done(runs ...string) func(*situation) {
	return func(s *situation) {
		for i, r := range runs {
			s.o.Results[r] = results.Envelope{Run: r, Point: "p-" + r, Target: "m", Finished: t0.Add(time.Duration(i+1) * time.Minute)}
		}
	}
}

func failing(run, reason string) func(*situation) {
	return func(s *situation) {
		s.o.Results[run] = results.Envelope{Run: run, Point: "p-" + run, Target: "m", Finished: t0.Add(time.Hour),
			Failure: &results.Failure{Reason: reason, Message: "it broke"}}
	}
}

func job(run string, pods ...corev1.Pod) func(*situation) {
	return func(s *situation) {
		s.o.Attempts = append(s.o.Attempts, Attempt{
			Execution: s.b.Status.Execution.ID, Run: run, Pods: pods,
			Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-" + run, CreationTimestamp: metav1.NewTime(t0)}},
		})
	}
}

func otherJob(s *situation) {
	s.o.Attempts = append(s.o.Attempts, Attempt{Execution: "old", Run: "r1", Pods: []corev1.Pod{running()}, Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "old-r1"}}})
}

func pod(status corev1.ContainerState) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", CreationTimestamp: metav1.NewTime(t0)}}
	p.Spec.NodeName = "node"
	p.Spec.Containers = []corev1.Container{{Name: RunnerContainer, Image: "image"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: RunnerContainer, State: status}}
	return p
}

func running() corev1.Pod {
	return pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

func exited(code int32) corev1.Pod {
	return pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(t0.Add(time.Minute))}})
}

func suspend(s *situation) { s.b.Spec.Suspend = true }

// actions is a decision's work in words.
func actions(d Decision, b *v1alpha1.DBBenchmark) string {
	var all []string
	if d.Begins(b) {
		all = append(all, "begin")
	}
	if d.Protect {
		all = append(all, "protect")
	}
	for _, a := range d.Collect {
		all = append(all, "collect "+a.Run)
	}
	for _, e := range d.Store {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("store %s %s lost %d", e.Run, e.Failure.Reason, e.Lost), " lost 0"))
	}
	for _, j := range d.DeleteJobs {
		all = append(all, "delete "+j.Name)
	}
	for _, m := range d.DeleteMaps {
		all = append(all, "delete "+m)
	}
	if d.Create != nil {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("create %s again %d", d.Create.ID, d.Create.Attempt), " again 0"))
	}
	for _, c := range d.CleanUp {
		all = append(all, strings.TrimSpace("clean "+c.Target+" "+c.Dataset))
	}
	if d.Release {
		all = append(all, "release")
	}
	return strings.Join(all, ", ")
}

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name    string
		s       *situation
		actions string
		reason  string // of Ready
		says    string
	}{
		{"a new benchmark is put on record first", newSituation(fresh), "begin", "Pending", ""},
		{"then it is protected", newSituation(func(s *situation) { s.b.Finalizers = nil }), "protect", "Pending", ""},
		{"then its first run starts", newSituation(), "create r1", "Running", "r1"},
		{"a run under way is left alone", newSituation(job("r1", running())), "", "Running", "r1 is under way (1 of 3)"},
		{"a Job without a pod yet is waited for", newSituation(job("r1")), "", "Running", "under way"},
		{"a run whose runner has ended is collected", newSituation(job("r1", exited(0))), "collect r1", "Running", ""},
		{"a runner that failed is collected too", newSituation(job("r1", exited(1))), "collect r1", "Running", ""},
		{"once stored, the Job goes and the next run starts", newSituation(done("r1"), job("r1", exited(0))), "delete job-r1, create r2", "Running", ""},
		{"a stored run is never started again", newSituation(done("r1", "r3")), "create r2", "Running", ""},
		{"at the end it is complete", newSituation(done("r1", "r2", "r3")), "", "Complete", "all 3 runs"},
		{"also while the last Job is still there", newSituation(done("r1", "r2", "r3"), job("r3", exited(0))), "delete job-r3", "Complete", ""},
		{"a failed run ends it", newSituation(done("r1"), failing("r2", "AuthenticationFailed"), job("r2", exited(1))), "delete job-r2", "AuthenticationFailed", "r2 failed: it broke"},
		{"or not, with Continue", newSituation(failing("r1", "WorkloadFailed"), func(s *situation) { s.b.Spec.OnFailure = v1alpha1.OnFailureContinue }), "create r2", "Running", ""},
		{"but then it is said at the end", newSituation(done("r1", "r3"), failing("r2", "WorkloadFailed"),
			func(s *situation) { s.b.Spec.OnFailure = v1alpha1.OnFailureContinue }), "", "RunsFailed", "1 of 3 runs failed"},
		{"suspended, no run starts", newSituation(done("r1"), suspend), "", "Suspended", ""},
		{"suspended, the run under way goes on", newSituation(job("r1", running()), suspend), "", "Running", ""},
		{"suspended, what has ended is collected", newSituation(job("r1", exited(0)), suspend), "collect r1", "Running", ""},
		{"suspended from the start, nothing begins", newSituation(fresh, suspend), "", "Suspended", ""},
		{"a spec that cannot be run is said", newSituation(fresh, func(s *situation) {
			s.o.SpecError = &SpecError{Reason: v1alpha1.ReasonInvalidSpec, Path: "spec.sweep.axes[0].path", Message: "no such field"}
		}), "", "InvalidSpec", "spec.sweep.axes[0].path: no such field"},
		{"a spec made invalid stops what runs", newSituation(job("r1", running()), func(s *situation) { s.o.SpecError = errors.New("broken") }), "delete job-r1", "InvalidSpec", ""},
		{"a changed plan begins anew and stops the old run", newSituation(job("r1", running()), func(s *situation) {
			s.b.Spec.Workload.Slap.LoadType = v1alpha1.SlapRead
			s.b.Generation = 2
		}), "begin, delete job-r1", "Pending", ""},
		{"the new run waits for the old pod", newSituation(otherJob), "delete old-r1", "Pending", "earlier run"},
		{"a run whose Job somebody deleted is lost", newSituation(done("r1"), func(s *situation) {
			s.b.Status.Execution.ActiveRun = &v1alpha1.ActiveRun{ID: "r2"}
		}), "store r2 RunnerLost", "Running", ""},
		{"but not while its pod runs", newSituation(func(s *situation) {
			s.b.Status.Execution.ActiveRun = &v1alpha1.ActiveRun{ID: "r1"}
			s.o.Attempts = []Attempt{{Execution: s.b.Status.Execution.ID, Run: "r1", Pods: []corev1.Pod{running()}}}
		}), "", "Pending", "earlier run"},
		{"a run that is not settled stays on record", newSituation(func(s *situation) {
			s.b.Status.Execution.ActiveRun = &v1alpha1.ActiveRun{ID: "r1"}
			s.o.Attempts = []Attempt{{Execution: s.b.Status.Execution.ID, Run: "r1", Pods: []corev1.Pod{running()}}}
			s.b.Status = Next(t0, s.b, s.o).Status
			s.o.Attempts = nil
		}), "store r1 RunnerLost", "Running", ""},
		{"nor if its result is stored", newSituation(done("r1"), func(s *situation) {
			s.b.Status.Execution.ActiveRun = &v1alpha1.ActiveRun{ID: "r1"}
		}), "create r2", "Running", ""},
		{"who came first holds the server", newSituation(func(s *situation) {
			s.o.Queue = []Claim{{"other", "second", t0.Add(-time.Minute), t0}, {"other", "first", t0.Add(-time.Hour), t0}, {"other", "later", t0.Add(time.Hour), t0}}
		}), "", "TargetBusy", "other/first holds the server; this is number 3"},
		{"who came later does not", newSituation(func(s *situation) {
			s.o.Queue = []Claim{{"other", "later", t0.Add(time.Hour), t0}}
		}), "create r1", "Running", ""},
		{"a run of somebody else on the server is waited for", newSituation(func(s *situation) { s.o.Occupants = []string{"other/deleted"} }), "", "TargetBusy", "other/deleted"},
		{"results beyond the history's limit go", newSituation(done("r1"), job("r2", running()), func(s *situation) {
			s.o.Maps = []ResultMap{
				{Name: "a", Execution: "e1", Created: t0.Add(-4 * time.Hour)}, {Name: "b", Execution: "e2", Created: t0.Add(-3 * time.Hour)}, {Name: "c", Execution: "e3", Created: t0.Add(-2 * time.Hour)},
				{Name: "d", Execution: s.b.Status.Execution.ID, Created: t0},
			}
		}), "delete a", "Running", ""},
		{"an API that refuses the Job is quoted", newSituation(func(s *situation) { s.o.CannotCreate = &Refusal{Err: errors.New("count quota")} }), "create r1", "Pending", "count quota"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Next(t0.Add(5*time.Second), tc.s.b, tc.s.o)
			if got := actions(d, tc.s.b); got != tc.actions {
				t.Errorf("actions: %q, want %q", got, tc.actions)
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.says) {
				t.Errorf("Ready: %s: %s; want %s: …%s…", ready.Reason, ready.Message, tc.reason, tc.says)
			}
			if again := Next(t0.Add(5*time.Second), tc.s.b, tc.s.o); cmp.Diff(d, again) != "" {
				t.Error("asked again, the answer is another")
			}
		})
	}
}

// TestConditions holds every phase to what kubectl wait and kstatus make of it.
func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    *situation
		want string
	}{
		{"running", newSituation(job("r1", running())), "Reconciling"},
		{"suspended", newSituation(suspend), ""},
		{"complete", newSituation(done("r1", "r2", "r3")), "Complete Ready"},
		{"failed", newSituation(failing("r1", "WorkloadFailed")), "Failed Stalled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.s.b.Generation = 7
			d := Next(t0, tc.s.b, tc.s.o)
			var isTrue []string
			for _, kind := range []string{"Complete", "Failed", "Ready", "Reconciling", "Stalled"} {
				c := meta.FindStatusCondition(d.Status.Conditions, kind)
				if c == nil || c.ObservedGeneration != 7 || c.Reason == "" {
					t.Fatalf("%s: %+v", kind, c)
				}
				if c.Status == metav1.ConditionTrue {
					isTrue = append(isTrue, kind)
				}
			}
			if got := strings.Join(isTrue, " "); got != tc.want {
				t.Errorf("true are %q, want %q", got, tc.want)
			}
			if c := meta.FindStatusCondition(d.Status.Conditions, "Passed"); c.Status != metav1.ConditionUnknown || c.Reason != "NoThresholds" {
				t.Errorf("Passed: %+v", c)
			}
		})
	}
}

// TestTransitionTime moves only with the status of a condition.
func TestTransitionTime(t *testing.T) {
	s := newSituation(job("r1", running()))
	s.b.Status = Next(t0, s.b, s.o).Status
	s.b.Status = Next(t0.Add(time.Hour), s.b, s.o).Status
	if c := meta.FindStatusCondition(s.b.Status.Conditions, "Reconciling"); !c.LastTransitionTime.Time.Equal(t0) {
		t.Errorf("Reconciling since %s, want %s", c.LastTransitionTime, t0)
	}
	done("r1", "r2", "r3")(s)
	s.o.Attempts = nil
	s.b.Status = Next(t0.Add(2*time.Hour), s.b, s.o).Status
	if c := meta.FindStatusCondition(s.b.Status.Conditions, "Complete"); !c.LastTransitionTime.Time.Equal(t0.Add(2 * time.Hour)) {
		t.Errorf("Complete since %s", c.LastTransitionTime)
	}
}

// TestEndedStays: what has ended does not begin again, whatever becomes of its results.
func TestEndedStays(t *testing.T) {
	s := newSituation(done("r1", "r2", "r3"))
	s.b.Status = Next(t0, s.b, s.o).Status
	before := s.b.Status.DeepCopy()
	s.o.Results = nil
	d := Next(t0.Add(time.Hour), s.b, s.o)
	if got := actions(d, s.b); got != "" {
		t.Errorf("actions: %s", got)
	}
	if diff := cmp.Diff(before, &d.Status); diff != "" {
		t.Error(diff)
	}
}

// TestHistory: a change of the plan puts the execution into the history.
func TestHistory(t *testing.T) {
	s := newSituation(done("r1"), job("r2", running()))
	s.b.Status = Next(t0, s.b, s.o).Status
	first := s.b.Status.Execution.ID
	s.b.Generation = 2
	s.b.Spec.Iterations = 5
	s.b.Status = Next(t0.Add(time.Minute), s.b, s.o).Status
	if len(s.b.Status.History) != 1 {
		t.Fatalf("history: %+v", s.b.Status.History)
	}
	h := s.b.Status.History[0]
	if h.ID != first || h.Reason != "Cancelled" || h.Completed != 1 || h.Total != 3 || !h.CompletionTime.Time.Equal(t0.Add(time.Minute)) {
		t.Errorf("history: %+v", h)
	}
	if e := s.b.Status.Execution; e.ID == first || e.Generation != 2 || e.Completed != 0 || s.b.Status.Points != nil {
		t.Errorf("execution: %+v", e)
	}
}

// TestExecutionID survives changes that run nothing anew, and a lost status.
func TestExecutionID(t *testing.T) {
	s := newSituation()
	id := s.b.Status.Execution.ID
	if len(id) != 8 {
		t.Errorf("id %q", id)
	}
	s.b.Generation, s.b.Spec.Suspend = 2, true
	if ExecutionID(s.b) != id {
		t.Error("suspend makes another execution")
	}
	lost := newSituation(fresh)
	if ExecutionID(lost.b) != id {
		t.Error("the id is not found again")
	}
	other := newSituation(fresh, func(s *situation) { s.b.UID = types.UID("uid-2") })
	if ExecutionID(other.b) == id {
		t.Error("another resource has the same id")
	}
}

func TestRetire(t *testing.T) {
	deleted := func(s *situation) { s.b.DeletionTimestamp = &metav1.Time{Time: t0} }
	ended := func(s *situation) { done("r1", "r2", "r3")(s); s.b.Status = Next(t0, s.b, s.o).Status }
	cleanup := func(pods ...corev1.Pod) func(*situation) {
		return func(s *situation) {
			s.o.Cleanups = []Attempt{{Execution: FinalExecution, Target: "m", Pods: pods, Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(t0)}}}}
		}
	}
	for _, tc := range []struct {
		name    string
		after   time.Duration
		s       *situation
		actions string
		outcome string
	}{
		{"without the finalizer there is nothing to do", 0, newSituation(fresh, deleted), "", ""},
		{"the run under way is stopped", 0, newSituation(job("r1", running()), deleted), "delete job-r1", ""},
		{"its pod is waited for", time.Second, newSituation(deleted, func(s *situation) {
			s.o.Attempts = []Attempt{{Execution: s.b.Status.Execution.ID, Run: "r1", Pods: []corev1.Pod{running()}}}
		}), "", ""},
		{"but not for ever", 3 * time.Minute, newSituation(deleted, func(s *situation) {
			s.o.Attempts = []Attempt{{Execution: s.b.Status.Execution.ID, Run: "r1", Pods: []corev1.Pod{running()}}}
		}), "clean m", ""},
		{"then the data is dropped", time.Second, newSituation(deleted), "clean m", ""},
		{"the clean-up is waited for", time.Second, newSituation(deleted, cleanup(running())), "", ""},
		{"but not for ever", 2 * time.Minute, newSituation(deleted, cleanup(running())), "release", "m: it did not end in time"},
		{"then the resource goes", time.Second, newSituation(deleted, cleanup(exited(0))), "release", ""},
		{"also if it failed", time.Second, newSituation(deleted, cleanup(exited(1))), "release", "m: the runner failed"},
		{"what ended well has cleaned up itself", 0, newSituation(ended, deleted), "release", ""},
		{"a Secret that is missing is not waited for", 30 * time.Second, newSituation(deleted, func(s *situation) {
			a := attemptOf(Trouble{"FailedMount", `secret "nobody" not found`}, nil, waitingFor("ContainerCreating", ""))
			a.Execution, a.Run, a.Target = FinalExecution, "", "m"
			s.o.Cleanups = []Attempt{a}
		}), "release", `m: a Secret of the target, or a key of it, is missing: secret "nobody" not found; create it, or correct credentialsSecretRef or tls`},
		{"where no runner got to the server nothing is dropped", 0, newSituation(func(s *situation) {
			failing("r1", v1alpha1.ReasonSecretNotFound)(s)
			s.b.Status = Next(t0, s.b, s.o).Status
		}, deleted), "release", ""},
		{"where one did, it is", 0, newSituation(func(s *situation) {
			failing("r1", v1alpha1.ReasonWorkloadFailed)(s)
			s.b.Status = Next(t0, s.b, s.o).Status
		}, deleted), "clean m", ""},
		{"what is to be kept is kept", 0, newSituation(deleted, func(s *situation) { s.b.Spec.Cleanup = v1alpha1.CleanupNever }), "release", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Next(t0.Add(tc.after), tc.s.b, tc.s.o)
			if got := actions(d, tc.s.b); got != tc.actions {
				t.Errorf("actions: %q, want %q", got, tc.actions)
			}
			if d.Outcome != tc.outcome {
				t.Errorf("outcome: %q, want %q", d.Outcome, tc.outcome)
			}
			if tc.actions == "" && len(tc.s.b.Finalizers) > 0 && d.After <= 0 {
				t.Error("nothing would wake it")
			}
		})
	}
}
