package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// step is what is asked of Next, and what is expected.
type lifecycleStep struct {
	name    string
	after   time.Duration
	change  func(*situation)
	actions string
	reason  string
	says    string
}

// follow asks Next at each step and goes on from the status that it wants.
func follow(t *testing.T, s *situation, steps []lifecycleStep) {
	t.Helper()
	for _, step := range steps {
		if step.change != nil {
			step.change(s)
		}
		d := Next(t0.Add(step.after), s.b, s.o)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if got := actions(d, s.b); got != step.actions {
			t.Errorf("%s: %q, want %q", step.name, got, step.actions)
		}
		if ready.Reason != step.reason || !strings.Contains(ready.Message, step.says) {
			t.Errorf("%s: %s: %s; want %s: …%s…", step.name, ready.Reason, ready.Message, step.reason, step.says)
		}
		s.b.Status = d.Status
	}
}

// shared is a situation of two datasets on two targets, with a run each.
func shared(change ...func(*situation)) *situation {
	s := newSituation()
	s.b.Spec.Targets = []v1alpha1.Target{{Name: "a", Host: "a"}, {Name: "b", Host: "b"}}
	s.b.Spec.Workload = v1alpha1.Workload{OLTP: &v1alpha1.OLTP{}}
	s.o.Runs = nil
	for _, id := range []string{"a1/d0001", "b1/d0001", "a2/d0002", "b2/d0002"} {
		run, dataset, _ := strings.Cut(id, "/")
		s.o.Runs = append(s.o.Runs, Run{ID: run, Point: "p" + run[1:], Target: run[:1], Dataset: dataset, Iteration: 1})
	}
	s.b.Status.Execution = nil
	s.b.Status = Next(t0, s.b, s.o).Status
	for _, c := range change {
		c(s)
	}
	return s
}

func result(run, reason string) func(*situation) {
	return func(s *situation) {
		r := s.o.Runs[slices.IndexFunc(s.o.Runs, func(r Run) bool { return r.ID == run })]
		e := results.Envelope{Run: r.ID, Point: r.Point, Target: r.Target, Finished: t0.Add(time.Minute)}
		if reason != "" {
			e.Failure = &results.Failure{Reason: reason, Message: "it broke"}
		}
		s.o.Results[run] = e
	}
}

func cleaning(target, dataset string, pods ...corev1.Pod) func(*situation) {
	return func(s *situation) {
		s.o.Cleanups = slices.DeleteFunc(s.o.Cleanups, func(a Attempt) bool { return a.Target == target && a.Dataset == dataset })
		s.o.Cleanups = append(s.o.Cleanups, Attempt{Execution: s.b.Status.Execution.ID, Target: target, Dataset: dataset, Pods: pods,
			Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "clean-" + target + "-" + dataset, CreationTimestamp: metav1.NewTime(t0.Add(time.Minute))}}})
	}
}

func all(changes ...func(*situation)) func(*situation) {
	return func(s *situation) {
		for _, c := range changes {
			c(s)
		}
	}
}

// TestDatasets: the data of a dataset is dropped when its last run on a target is over.
func TestDatasets(t *testing.T) {
	const now = 70 * time.Second
	follow(t, shared(), []lifecycleStep{
		{"first run", now, nil, "create a1", "Running", ""},
		{"the other target", now, result("a1", ""), "create b1", "Running", ""},
		{"before the next dataset", now, result("b1", ""), "clean a d0001", "Running", "dropped"},
		{"while it is dropped", now, cleaning("a", "d0001", running()), "", "Running", "dropped"},
		{"when it is dropped", now, cleaning("a", "d0001", exited(0)), "create a2", "Running", ""},
		{"the next target", now, result("a2", ""), "delete clean-a-d0001, clean b d0001", "Running", ""},
		{"a clean-up that fails holds nothing up", now, all(func(s *situation) { s.o.Cleanups = nil }, cleaning("b", "d0001", exited(1))), "create b2", "Running", ""},
		{"at the end", now, result("b2", ""), "delete clean-b-d0001, clean a d0002, clean b d0002", "Running", "dropped"},
		{"while one is dropped", now, all(cleaning("a", "d0002", exited(0)), cleaning("b", "d0002", running())), "delete clean-b-d0001", "Running", ""},
		{"a clean-up that does not end is said", 3 * time.Minute, nil, "delete clean-b-d0001", "Complete", "all 4 runs succeeded; data was not dropped: b: it did not end in time"},
		{"then the Jobs go", 3 * time.Minute, nil, "delete clean-b-d0001, delete clean-a-d0002, delete clean-b-d0002", "Complete", "not dropped"},
	})
}

// TestDatasetsByCleanup: spec.cleanup says what is dropped, also after a failure.
func TestDatasetsByCleanup(t *testing.T) {
	failed := all(result("a1", ""), result("b1", "WorkloadFailed"))
	for _, tc := range []struct {
		name    string
		change  func(*situation)
		cleanup v1alpha1.Cleanup
		actions string
		reason  string
	}{
		{"after a failure", failed, v1alpha1.CleanupAlways, "clean a d0001, clean b d0001", "Running"},
		{"only what succeeded", failed, v1alpha1.CleanupOnSuccess, "clean a d0001", "Running"},
		{"nothing", failed, v1alpha1.CleanupNever, "", "WorkloadFailed"},
		{"nothing was made", result("a1", "SecretNotFound"), v1alpha1.CleanupAlways, "", "SecretNotFound"},
		{"nobody got in", result("a1", "AuthenticationFailed"), v1alpha1.CleanupAlways, "", "AuthenticationFailed"},
		{"an earlier run's pod is waited for", all(failed, func(s *situation) {
			s.o.Attempts = []Attempt{{Execution: s.b.Status.Execution.ID, Run: "b1", Pods: []corev1.Pod{running()}}}
		}), v1alpha1.CleanupAlways, "", "Pending"},
		{"the API refuses", all(failed, func(s *situation) { s.o.CannotCreate = &Refusal{Err: fmt.Errorf("quota")} }), v1alpha1.CleanupAlways, "", "WorkloadFailed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := shared(tc.change)
			s.b.Spec.Cleanup = tc.cleanup
			follow(t, s, []lifecycleStep{{tc.name, 5 * time.Minute, nil, tc.actions, tc.reason, ""}})
		})
	}
}

// TestPerRunAndNeverLeaveDataAlone: what is no dataset is not dropped at the end.
func TestPerRunAndNeverLeaveDataAlone(t *testing.T) {
	s := shared(func(s *situation) {
		for i := range s.o.Runs {
			s.o.Runs[i].Dataset = ""
		}
	}, result("a1", ""), result("b1", ""), result("a2", ""), result("b2", ""))
	follow(t, s, []lifecycleStep{{"end", time.Minute, nil, "", "Complete", "all 4 runs"}})
}

// TestRetries: a run that was lost is repeated, one that failed is not.
func TestRetries(t *testing.T) {
	retries := func(s *situation) { s.b.Spec.Retries = 1 }
	gone := func(s *situation) { s.o.Attempts = nil }
	jobGone := func(number int32) func(*situation) {
		return func(s *situation) {
			gone(s)
			job("r1", running())(s)
			s.o.Attempts[0].Number = number
			s.b.Status = Next(t0, s.b, s.o).Status
			gone(s)
		}
	}
	lost := func(s *situation) { s.o.Losses = map[string]int32{"r1": 1} }
	follow(t, newSituation(retries), []lifecycleStep{
		{"its Job was deleted", time.Second, jobGone(0), "store r1 RunnerLost lost 1", "Running", "r1 was lost"},
		{"it is repeated", time.Second, lost, "create r1 again 1", "Running", ""},
		{"its Job was deleted again", time.Second, jobGone(1), "store r1 RunnerLost", "Running", ""},
		{"that was enough", time.Second, result("r1", v1alpha1.ReasonRunnerLost), "", "RunnerLost", "it broke"},
	})
	// The first attempt's Job is deleted, the second is the one that counts.
	both := newSituation(retries, lost, job("r1", exited(1)), job("r1", exited(0)))
	both.o.Attempts[1].Number = 1
	follow(t, both, []lifecycleStep{{"two attempts", time.Second, nil, "collect r1, delete job-r1", "Running", ""}})

	for reason, repeated := range map[string]bool{
		v1alpha1.ReasonRunnerLost: true, v1alpha1.ReasonRunnerOOMKilled: false, v1alpha1.ReasonWorkloadFailed: false,
		v1alpha1.ReasonTargetUnreachable: false, v1alpha1.ReasonDeadlineExceeded: false, v1alpha1.ReasonInvalidRecord: false,
	} {
		e := Repeated(&v1alpha1.DBBenchmarkSpec{Retries: 2}, 1, results.Envelope{Failure: &results.Failure{Reason: reason}})
		if got := e.Lost == 2; got != repeated {
			t.Errorf("%s is repeated: %v", reason, got)
		}
		if Repeated(&v1alpha1.DBBenchmarkSpec{Retries: 2}, 2, e).Lost > 2 {
			t.Error("repeated once too often")
		}
	}
}

func request(value string) func(*situation) {
	return func(s *situation) { s.b.Annotations = map[string]string{v1alpha1.AnnotationRunRequestedAt: value} }
}

// TestRequest: another value of the annotation starts an execution, the same one does not.
func TestRequest(t *testing.T) {
	none := func(s *situation) { s.o.Results, s.o.Attempts = map[string]results.Envelope{}, nil }
	finished := done("r1", "r2", "r3")
	s := newSituation(fresh, request("one"))
	ids := map[string]bool{}
	note := func(s *situation) {
		if id := s.b.Status.Execution.ID; ids[id] {
			t.Errorf("the execution %s was there before", id)
		} else {
			ids[id] = true
		}
		s.b.Finalizers = []string{Finalizer}
	}
	follow(t, s, []lifecycleStep{
		{"what is there at first asks for nothing more", 0, nil, "begin", "Pending", ""},
		{"it runs", 0, all(note, finished), "", "Complete", ""},
		{"it rests", 0, nil, "", "Complete", ""},
		{"another request", 0, request("two"), "begin", "Pending", ""},
		{"it is not started twice", 0, all(note, none), "create r1", "Running", ""},
		{"a request cancels what runs", 0, all(job("r1", running()), request("three")), "begin, delete job-r1", "Pending", ""},
		{"it runs", 0, all(note, none, finished), "", "Complete", ""},
		{"the words of before are a request, too", 0, request("two"), "begin", "Pending", ""},
		{"suspended, it waits", 0, all(note, none, suspend, finished), "", "Complete", ""},
		{"suspended, it waits", 0, all(request("four"), none), "", "Complete", ""},
		{"resumed, it starts", 0, func(s *situation) { s.b.Spec.Suspend = false }, "begin", "Pending", ""},
		{"no request is none", 0, all(note, finished, func(s *situation) { s.b.Annotations = nil }), "", "Complete", ""},
	})
	if e := s.b.Status.Execution; e.Trigger != v1alpha1.TriggerRequest || len(s.b.Status.History) == 0 || s.b.Status.History[0].Trigger != v1alpha1.TriggerRequest {
		t.Errorf("execution: %+v", e)
	}
}

// TestSchedule: executions start at their times; a time that cannot be kept is skipped
// and said.
func TestSchedule(t *testing.T) {
	nightly := func(s *situation) {
		s.b.Spec.Schedule = &v1alpha1.Schedule{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}
	}
	finished := done("r1", "r2", "r3")
	none := func(s *situation) { s.o.Results = map[string]results.Envelope{} }
	// t0 is 12:00 UTC; 3:00 in Berlin, in winter, is 2:00 UTC.
	first := 14 * time.Hour
	s := newSituation(nightly, finished)
	schedule := func(next, last time.Duration, skipped int32, because string) {
		t.Helper()
		got := s.b.Status.Schedule
		want := &v1alpha1.ScheduleStatus{NextTime: &metav1.Time{Time: t0.Add(next)}, Skipped: skipped, SkippedBecause: because}
		if last > 0 {
			want.LastTime = &metav1.Time{Time: t0.Add(last)}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("schedule: %s", diff)
		}
	}
	follow(t, s, []lifecycleStep{{"before", 0, nil, "", "Complete", ""}})
	schedule(first, 0, 0, "")
	if d := Next(t0, s.b, s.o); d.After != first {
		t.Errorf("looks again after %s", d.After)
	}
	follow(t, s, []lifecycleStep{
		{"just before", first - time.Second, nil, "", "Complete", ""},
		{"on time", first, nil, "begin", "Pending", ""},
	})
	schedule(first+24*time.Hour, first, 0, "")
	if s.b.Status.Execution.Trigger != v1alpha1.TriggerSchedule {
		t.Errorf("execution: %+v", s.b.Status.Execution)
	}
	follow(t, s, []lifecycleStep{
		{"it runs", first + time.Minute, none, "create r1", "Running", ""},
		{"it still runs", first + 24*time.Hour, nil, "create r1", "Running", ""},
	})
	schedule(first+48*time.Hour, first+24*time.Hour, 1, "the execution "+s.b.Status.Execution.ID+" was still under way")
	follow(t, s, []lifecycleStep{
		{"it ends", first + 30*time.Hour, finished, "", "Complete", ""},
		{"nobody was there for three nights", first + 97*time.Hour, nil, "", "Complete", ""},
	})
	schedule(first+120*time.Hour, first+96*time.Hour, 4, controllerAway)
	follow(t, s, []lifecycleStep{{"suspended", first + 120*time.Hour, suspend, "", "Complete", ""}})
	schedule(first+144*time.Hour, first+120*time.Hour, 5, "spec.suspend was true")
	follow(t, s, []lifecycleStep{{"a little late", first + 144*time.Hour + 4*time.Minute, func(s *situation) { s.b.Spec.Suspend = false }, "begin", "Pending", ""}})
	schedule(first+168*time.Hour, first+144*time.Hour, 0, "")
	follow(t, s, []lifecycleStep{{"without a schedule", first + 150*time.Hour, func(s *situation) { s.b.Spec.Schedule = nil; finished(s) }, "", "Complete", ""}})
	if s.b.Status.Schedule != nil {
		t.Errorf("schedule: %+v", s.b.Status.Schedule)
	}
}

// TestIdle: what is over costs nothing until something is asked of it.
func TestIdle(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*situation)
		idle   bool
		again  time.Duration
	}{
		{"over", func(*situation) {}, true, 0},
		{"requested", request("now"), false, 0},
		{"requested but suspended", all(request("now"), suspend), true, 0},
		{"deleted", func(s *situation) { s.b.DeletionTimestamp = &metav1.Time{Time: t0} }, false, 0},
		{"another spec", func(s *situation) { s.b.Generation = 2 }, false, 0},
		{"scheduled", func(s *situation) {
			s.b.Spec.Schedule = &v1alpha1.Schedule{Cron: "0 3 * * *"}
			s.b.Status.Schedule = &v1alpha1.ScheduleStatus{NextTime: &metav1.Time{Time: t0.Add(time.Hour)}}
		}, true, time.Hour},
		{"due", func(s *situation) {
			s.b.Spec.Schedule = &v1alpha1.Schedule{Cron: "0 3 * * *"}
			s.b.Status.Schedule = &v1alpha1.ScheduleStatus{NextTime: &metav1.Time{Time: t0}}
		}, false, 0},
	} {
		s := newSituation(done("r1", "r2", "r3"))
		s.b.Status = Next(t0, s.b, s.o).Status
		tc.change(s)
		if idle, again := Idle(t0, s.b); idle != tc.idle || again != tc.again {
			t.Errorf("%s: %v, again after %s", tc.name, idle, again)
		}
	}
}

// TestUpgrade: a field that a later version adds, and a digest that it makes otherwise,
// start nothing.
func TestUpgrade(t *testing.T) {
	s := newSituation(done("r1", "r2", "r3"))
	s.b.Status = Next(t0, s.b, s.o).Status
	s.b.Status.Execution.PlanHash = "of another version"
	follow(t, s, []lifecycleStep{{"another digest of the same generation", time.Minute, nil, "", "Complete", ""}})
	if got, want := Hash(parse(t, "load: {clients: 1}\niterations: 3\norder: RoundRobin\nworkload: {slap: {charColumns: 1, intColumns: 1}}")), Hash(parse(t, "")); got != want {
		t.Error("a default that is written out changes the digest")
	}
	if Hash(parse(t, "workload: {slap: {charColumns: 0}}")) == Hash(parse(t, "")) {
		t.Error("a field that is 0 is not its default")
	}
}

// TestRefusal: a Job that the API does not take is tried for as long as that may pass.
func TestRefusal(t *testing.T) {
	gr := schema.GroupResource{Group: "batch", Resource: "jobs"}
	quota := apierrors.NewForbidden(gr, "j", errors.New("exceeded quota: small, requested: count/jobs.batch=1"))
	for _, tc := range []struct {
		name    string
		err     error
		after   time.Duration
		waits   string
		failure string
	}{
		{"quota", quota, 59 * time.Minute, "QuotaExceeded", ""},
		{"quota for long", quota, time.Hour, "QuotaExceeded", "QuotaExceeded"},
		{"a webhook, at first", apierrors.NewForbidden(gr, "j", errors.New("admission webhook denied")), 30 * time.Second, "Pending", ""},
		{"a webhook", apierrors.NewForbidden(gr, "j", errors.New("admission webhook denied")), time.Minute, "Pending", "PodRejected"},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", nil), 0, "Pending", "PodRejected"},
		{"slow", apierrors.NewTimeoutError("slow", 1), 59 * time.Minute, "Pending", ""},
		{"slow for long", apierrors.NewTimeoutError("slow", 1), time.Hour, "Pending", "RunnerLost"},
	} {
		r := &Refusal{Err: fmt.Errorf("create: %w", tc.err), Since: t0}
		if v := r.verdict(); v.reason != tc.waits || !strings.Contains(v.message, tc.err.Error()) {
			t.Errorf("%s: %+v", tc.name, v)
		}
		got := ""
		if e := r.GiveUp(t0.Add(tc.after), &v1alpha1.DBBenchmarkSpec{}, Run{ID: "r"}); e != nil {
			got = e.Failure.Reason
		}
		if got != tc.failure {
			t.Errorf("%s: given up with %q, want %q", tc.name, got, tc.failure)
		}
	}
}

// TestContentIdentical: with several targets the checksums are held against each other.
func TestContentIdentical(t *testing.T) {
	run := func(target, digest string, start int64) results.Envelope {
		r := contract.Record{Result: contract.Result{Checks: map[string]string{"rows": "1"}, MeasureStartUnixNanos: start}}
		if digest != "" {
			r.Result.Checks[checkContent] = digest
		}
		return results.Envelope{Point: "p1", Target: target, Records: []contract.Record{r, {Result: contract.Result{MeasureStartUnixNanos: start + 5_000_000}}}}
	}
	for _, tc := range []struct {
		name      string
		runs      []results.Envelope
		identical string
	}{
		{"the same", []results.Envelope{run("a", "x", 1), run("b", "x", 1), run("a", "x", 1)}, "true"},
		{"different", []results.Envelope{run("a", "x", 1), run("b", "y", 1)}, "false"},
		{"different between iterations", []results.Envelope{run("a", "x", 1), run("b", "x", 1), run("b", "y", 1)}, "false"},
		{"one target", []results.Envelope{run("a", "x", 1), run("a", "y", 1)}, "unknown"},
		{"no checksum", []results.Envelope{run("a", "", 1), run("b", "", 1)}, "unknown"},
	} {
		points := []v1alpha1.PointResult{{ID: "p1", Target: "a"}, {ID: "p1", Target: "b"}}
		compareRuns(points, tc.runs)
		got := "unknown"
		if p := points[0].ContentIdentical; p != nil {
			got = fmt.Sprint(*p)
		}
		if got != tc.identical || (got == "false") != (len(points[0].Warnings) == 1) {
			t.Errorf("%s: %s, %v", tc.name, got, points[0].Warnings)
		}
		if points[0].StartSkewMicros != 5000 {
			t.Errorf("%s: the pods started within %d µs", tc.name, points[0].StartSkewMicros)
		}
	}
}

// TestProgress: only what is worth a write reaches the status, at most four times a run.
func TestProgress(t *testing.T) {
	s := newSituation(job("r1", running()))
	writes, last := 0, s.b.Status.Execution.ActiveRun
	for _, p := range []Progress{
		{Phase: "Preflight", PercentDone: -1}, {Phase: "Prepare", PercentDone: -1}, {Phase: "Prepare", PercentDone: -1}, {Phase: "Connect", PercentDone: -1},
		{Phase: "Measure", PercentDone: 1, EventsPerSecond: "10.0"}, {Phase: "Measure", PercentDone: 20}, {Phase: "Measure", PercentDone: 35},
		{Phase: "Measure", PercentDone: 49}, {Phase: "Measure", PercentDone: 65}, {Phase: "Measure", PercentDone: 98, EventsPerSecond: "99.0", P99Micros: 7},
		{Phase: "Measure", PercentDone: 99}, {Phase: "Verify", PercentDone: 100},
	} {
		p.Run = "r1"
		s.o.Progress = &p
		s.b.Status = Next(t0, s.b, s.o).Status
		if now := s.b.Status.Execution.ActiveRun; !cmp.Equal(last, now) {
			writes++
			last = now
		}
	}
	if writes != 5 { // one of them is the start
		t.Errorf("%d changes", writes)
	}
	if last.Phase != "Measure" || *last.PercentDone != 98 || last.EventsPerSecond != "99.0" || last.P99Micros != 7 {
		t.Errorf("at last: %+v", last)
	}
	s.o.Progress = &Progress{Run: "r2", Phase: "Measure", PercentDone: 100}
	if d := Next(t0, s.b, s.o); !cmp.Equal(d.Status.Execution.ActiveRun, last) {
		t.Error("another run's progress is taken")
	}
}
