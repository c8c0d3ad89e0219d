//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
)

// namespace makes a namespace for a test and returns its name.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// inCluster runs a command line in a namespace of the test's cluster.
func inCluster(ctx context.Context, ns string, args ...string) outcome {
	o := dbbench(ctx, "", append([]string{"--kubeconfig", kubeconfig, "-n", ns}, args...)...)
	o.stdout, o.stderr = strings.ReplaceAll(o.stdout, ns, "NAMESPACE"), strings.ReplaceAll(o.stderr, ns, "NAMESPACE")
	return o
}

// readBenchmark reads a benchmark of a file.
func readBenchmark(t *testing.T, path, ns string) *v1alpha1.DBBenchmark {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(text), "\n---\n")
	b := &v1alpha1.DBBenchmark{}
	if err := yaml.UnmarshalStrict([]byte(docs[len(docs)-1]), b); err != nil {
		t.Fatal(err)
	}
	b.Namespace = ns
	return b
}

// create makes the benchmark of testdata/bench.yaml with a status.
func create(t *testing.T, ns string, status func(*v1alpha1.DBBenchmark)) *v1alpha1.DBBenchmark {
	t.Helper()
	b := readBenchmark(t, "testdata/bench.yaml", ns)
	if err := admin.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if status != nil {
		status(b)
		if err := admin.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// conclusion sets the conditions of an execution, as the controller would.
func conclusion(b *v1alpha1.DBBenchmark, reason, message string, holding ...string) {
	b.Status.ObservedGeneration = b.Generation
	for _, c := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed} {
		status := metav1.ConditionFalse
		if slices.Contains(holding, c) {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: c, Status: status, Reason: reason, Message: message})
	}
}

func running(b *v1alpha1.DBBenchmark, completed int32) {
	conclusion(b, v1alpha1.ReasonRunning, "a run is under way")
	percent := int32(50)
	b.Status.Execution = &v1alpha1.Execution{
		ID: "e1", Generation: b.Generation, PlanHash: "hash", StartTime: metav1.Now(), Total: 8, Completed: completed,
		Progress: "2/8",
		ActiveRun: &v1alpha1.ActiveRun{ID: "p0003-mariadb-i1", Target: "mariadb", Iteration: 1, StartTime: metav1.Now(),
			PercentDone: &percent, EventsPerSecond: "1234.500", P99Micros: 12345},
	}
}

func complete(b *v1alpha1.DBBenchmark, execution string) {
	conclusion(b, v1alpha1.ReasonComplete, "all 8 runs succeeded", v1alpha1.ConditionReady, v1alpha1.ConditionComplete)
	now := metav1.Now()
	b.Status.Workload = "slap/Write"
	b.Status.Execution = &v1alpha1.Execution{ID: execution, Generation: b.Generation, PlanHash: "hash", StartTime: now, CompletionTime: &now,
		Total: 8, Completed: 8, Progress: "8/8"}
	b.Status.Points = nil
	for i, parameters := range []string{`{"load.clients":1,"load.eventsPerClient":100}`, `{"load.clients":1,"load.eventsPerClient":1000}`,
		`{"load.clients":4,"load.eventsPerClient":100}`, `{"load.clients":4,"load.eventsPerClient":1000}`} {
		p := v1alpha1.PointResult{ID: "p000" + string(rune('1'+i)), Target: "mariadb", Iterations: 2, Clients: 4, Events: 2000,
			ElapsedSeconds:  &v1alpha1.ElapsedSeconds{Average: "1.500", Minimum: "1.000", Maximum: "2.000"},
			EventsPerSecond: &v1alpha1.Spread{Median: "666.667", Minimum: "500.000", Maximum: "1000.000"},
			LatencyMicros:   &v1alpha1.Latency{Mean: 1000, P50: 900, P90: 1500, P95: 1700, P99: 2500, P999: 9000, Max: 12000},
			Parameters:      map[string]apiextensionsv1.JSON{},
		}
		_ = json.Unmarshal([]byte(parameters), &p.Parameters)
		b.Status.Points = append(b.Status.Points, p)
	}
	b.Status.Latest = &v1alpha1.LatestResult{EventsPerSecond: "666.667", P99: "2.5ms"}
}

func notPassed(b *v1alpha1.DBBenchmark, execution string) {
	complete(b, execution)
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPassed, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonThresholdsNotMet, Message: "latency.p99 is 2.5ms at p0004, more than 2ms"})
}

func brokenDown(b *v1alpha1.DBBenchmark, execution string) {
	conclusion(b, v1alpha1.ReasonTargetUnreachable, "the run p0001-mariadb-i1 failed: no such host", v1alpha1.ConditionFailed)
	b.Status.Execution = &v1alpha1.Execution{ID: execution, Generation: b.Generation, PlanHash: "hash", StartTime: metav1.Now(), Total: 8, Failed: 1}
}

func TestInCluster(t *testing.T) {
	ns := namespace(t)
	create(t, ns, func(b *v1alpha1.DBBenchmark) { complete(b, "e1") })
	for _, c := range []struct {
		name string
		args []string
	}{
		{"get", []string{"get"}},
		{"get-wide", []string{"get", "nightly", "-o", "wide"}},
		{"get-name", []string{"get", "-o", "name"}},
		{"get-jsonpath", []string{"get", "nightly", "-o", "jsonpath={.spec.iterations} {.status.execution.progress}{\"\\n\"}"}},
		{"get-none", []string{"get", "-l", "team=nobody"}},
		{"get-unknown", []string{"get", "weekly"}},
		{"get-output", []string{"get", "-o", "xml"}},
		{"results", []string{"results", "nightly"}},
		{"results-yaml", []string{"results", "nightly", "-o", "yaml"}},
		{"results-unknown", []string{"results", "weekly"}},
		{"complete-names", []string{"__complete", "results", ""}},
		{"complete-output", []string{"__complete", "results", "nightly", "-o", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := inCluster(t.Context(), ns, c.args...)
			if strings.HasPrefix(c.name, "complete-") {
				// cobra wants its own command first.
				o = dbbench(t.Context(), "", append([]string{c.args[0], "--kubeconfig", kubeconfig, "-n", ns}, c.args[1:]...)...)
			}
			golden(t, c.name, age.ReplaceAllString(o.transcript(c.args), "AGE"))
		})
	}
}

func TestGetAllNamespaces(t *testing.T) {
	ns := namespace(t)
	create(t, ns, nil)
	o := inCluster(t.Context(), ns, "get", "-A", "--no-headers")
	if !strings.Contains(o.stdout, "NAMESPACE   nightly") {
		t.Errorf("no namespace in the listing:\n%s%s", o.stdout, o.stderr)
	}
}

// read reads a benchmark again.
func read(t *testing.T, b *v1alpha1.DBBenchmark) *v1alpha1.DBBenchmark {
	t.Helper()
	now := &v1alpha1.DBBenchmark{}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	return now
}

func TestCancelResumeRerun(t *testing.T) {
	ns := namespace(t)
	b := create(t, ns, nil)
	step := func(wantSuspend bool, wantOut string, args ...string) {
		t.Helper()
		o := inCluster(t.Context(), ns, args...)
		if o.code != 0 || o.stdout != wantOut {
			t.Fatalf("%v: %+v", args, o)
		}
		if now := read(t, b); now.Spec.Suspend != wantSuspend {
			t.Fatalf("%v: suspend is %v", args, now.Spec.Suspend)
		}
	}
	step(true, "dbbenchmark.dbbench.dev/nightly cancelled\n", "cancel", "nightly")
	step(true, "dbbenchmark.dbbench.dev/nightly cancelled\n", "cancel", "nightly")
	step(false, "dbbenchmark.dbbench.dev/nightly resumed\n", "resume", "nightly")
	step(true, "dbbenchmark.dbbench.dev/nightly cancelled\n", "cancel", "nightly")
	step(false, "dbbenchmark.dbbench.dev/nightly rerun requested\n", "rerun", "nightly")
	first := read(t, b).Annotations[v1alpha1.AnnotationRunRequestedAt]
	if _, err := time.Parse(time.RFC3339, first); err != nil {
		t.Error(err)
	}
	step(false, "dbbenchmark.dbbench.dev/nightly rerun requested\n", "rerun", "nightly")
	if second := read(t, b).Annotations[v1alpha1.AnnotationRunRequestedAt]; second == first {
		t.Error("the second request is no other than the first")
	}
	if o := inCluster(t.Context(), ns, "cancel", "weekly"); o.code != exitError || !strings.Contains(o.stderr, `"weekly" not found`) {
		t.Errorf("cancel of an unknown one: %+v", o)
	}
}

// TestResumeKeepsToOthers: a suspension that stands in the file is not the plugin's to lift.
func TestResumeKeepsToOthers(t *testing.T) {
	ns := namespace(t)
	b := readBenchmark(t, "testdata/bench.yaml", ns)
	b.Spec.Suspend = true
	if err := admin.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	o := inCluster(t.Context(), ns, "resume", "nightly")
	if o.code != exitError || !strings.Contains(o.stderr, "set by another manager") {
		t.Errorf("%+v", o)
	}
}

// controller plays the controller: once the benchmark is there, and on every request
// once more, it goes through the steps.
func controller(ctx context.Context, t *testing.T, ns string, steps ...func(*v1alpha1.DBBenchmark)) (done chan struct{}) {
	t.Helper()
	done = make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < len(steps); {
			var b v1alpha1.DBBenchmark
			if err := admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "nightly"}, &b); err == nil {
				steps[i](&b)
				if admin.Status().Update(ctx, &b) == nil {
					i++
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return done
}

func TestRun(t *testing.T) {
	running2 := func(b *v1alpha1.DBBenchmark) { running(b, 2) }
	args := []string{"run", "-f", "testdata/bench.yaml"}
	for _, c := range []struct {
		name string
		end  func(*v1alpha1.DBBenchmark)
	}{
		{"run-complete", func(b *v1alpha1.DBBenchmark) { complete(b, "e1") }},
		{"run-not-passed", func(b *v1alpha1.DBBenchmark) { notPassed(b, "e1") }},
		{"run-failed", func(b *v1alpha1.DBBenchmark) { brokenDown(b, "e1") }},
		{"run-suspended", func(b *v1alpha1.DBBenchmark) {
			conclusion(b, v1alpha1.ReasonSuspended, "spec.suspend is true; no further run is started")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := namespace(t)
			done := controller(t.Context(), t, ns, running2, running2, c.end)
			o := inCluster(t.Context(), ns, args...)
			<-done
			golden(t, c.name, withoutWaiting(o).transcript(args))
			// What else is in the file is applied too.
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mariadb-bench"}, &corev1.Secret{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// withoutWaiting leaves out what depends on who is first, the plugin or the controller.
func withoutWaiting(o outcome) outcome {
	o.stderr = strings.ReplaceAll(o.stderr, "nightly: Waiting: for the controller\n", "")
	return o
}

// TestRunAgain: what has ended with the same spec is run once more, and the old result
// is not taken for the new one.
func TestRunAgain(t *testing.T) {
	for _, ended := range []func(*v1alpha1.DBBenchmark){
		func(b *v1alpha1.DBBenchmark) { complete(b, "e1") },
		func(b *v1alpha1.DBBenchmark) { brokenDown(b, "e1") },
	} {
		ns := namespace(t)
		first := inCluster(t.Context(), ns, "run", "-f", "testdata/bench.yaml", "--wait=false")
		if first.code != 0 {
			t.Fatalf("%+v", first)
		}
		<-controller(t.Context(), t, ns, ended)
		done := controller(t.Context(), t, ns, ended, func(b *v1alpha1.DBBenchmark) {
			if b.Annotations[v1alpha1.AnnotationRunRequestedAt] == "" {
				ended(b)
				return
			}
			notPassed(b, "e2")
		}, func(b *v1alpha1.DBBenchmark) { notPassed(b, "e2") })
		o := inCluster(t.Context(), ns, "run", "-f", "testdata/bench.yaml")
		<-done
		if o.code != exitNotPassed {
			t.Errorf("%+v", o)
		}
	}
}

// TestRunLiftsCancellation: what cancel has suspended, run starts again.
func TestRunLiftsCancellation(t *testing.T) {
	ns := namespace(t)
	for _, args := range [][]string{{"run", "-f", "testdata/bench.yaml", "--wait=false"}, {"cancel", "nightly"}, {"run", "-f", "testdata/bench.yaml", "--wait=false"}} {
		if o := inCluster(t.Context(), ns, args...); o.code != 0 {
			t.Fatalf("%v: %+v", args, o)
		}
	}
	var b v1alpha1.DBBenchmark
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "nightly"}, &b); err != nil {
		t.Fatal(err)
	}
	if b.Spec.Suspend || b.Annotations[v1alpha1.AnnotationRunRequestedAt] == "" {
		t.Errorf("suspend %v, request %q", b.Spec.Suspend, b.Annotations[v1alpha1.AnnotationRunRequestedAt])
	}
}

// TestRunInterrupted: the command ends, the benchmark does not.
func TestRunInterrupted(t *testing.T) {
	ns := namespace(t)
	ctx, interrupt := context.WithCancel(t.Context())
	controller(t.Context(), t, ns, func(b *v1alpha1.DBBenchmark) { running(b, 2) }, func(b *v1alpha1.DBBenchmark) {
		running(b, 3)
		interrupt()
	})
	o := inCluster(ctx, ns, "run", "-f", "testdata/bench.yaml")
	if o.code != exitInterrupted || !strings.Contains(o.stderr, "go on in the cluster") || strings.Contains(o.stderr, "error") {
		t.Errorf("%+v", o)
	}
	var b v1alpha1.DBBenchmark
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "nightly"}, &b); err != nil || b.Spec.Suspend {
		t.Errorf("suspend %v, %v", b.Spec.Suspend, err)
	}
}

func TestRunTimeout(t *testing.T) {
	ns := namespace(t)
	o := inCluster(t.Context(), ns, "run", "-f", "testdata/bench.yaml", "--timeout", "1s")
	if o.code != exitError || !strings.Contains(o.stderr, "have not ended within 1s; they go on") {
		t.Errorf("%+v", o)
	}
}

func TestRunConflict(t *testing.T) {
	ns := namespace(t)
	b := readBenchmark(t, "testdata/bench.yaml", ns)
	b.Spec.Iterations = 5
	if err := admin.Create(t.Context(), b, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-f", "testdata/bench.yaml", "--wait=false"}
	o := inCluster(t.Context(), ns, args...)
	if o.code != exitError || !strings.Contains(o.stderr, "--force-conflicts") || read(t, b).Spec.Iterations != 5 {
		t.Errorf("%+v", o)
	}
	if o := inCluster(t.Context(), ns, append(args, "--force-conflicts")...); o.code != exitOK || read(t, b).Spec.Iterations != 2 {
		t.Errorf("%+v", o)
	}
}

func TestRunRefused(t *testing.T) {
	ns := namespace(t)
	o := inCluster(t.Context(), ns, "run", "-f", "testdata/wrong.yaml")
	if o.code != exitError || !strings.Contains(o.stderr, "pasword") && !strings.Contains(o.stderr, "Wrong_Name") {
		t.Errorf("%+v", o)
	}
}

func TestRunDeleted(t *testing.T) {
	ns := namespace(t)
	controller(t.Context(), t, ns, func(b *v1alpha1.DBBenchmark) { running(b, 2) }, func(b *v1alpha1.DBBenchmark) {
		_ = admin.Delete(t.Context(), b.DeepCopy())
	})
	o := inCluster(t.Context(), ns, "run", "-f", "testdata/bench.yaml")
	if o.code != exitError || !strings.Contains(o.stderr, "nightly: it was deleted") {
		t.Errorf("%+v", o)
	}
}

// TestRunOfOthersNamespace: as with kubectl, -n must not contradict the file.
func TestRunOfOthersNamespace(t *testing.T) {
	ns := namespace(t)
	text, err := os.ReadFile("testdata/timed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "name: timed", "name: timed\n  namespace: elsewhere", 1))
	o := dbbench(t.Context(), string(text), "--kubeconfig", kubeconfig, "-n", ns, "run", "-f", "-")
	if o.code != exitError || !strings.Contains(o.stderr, "does not match the namespace") {
		t.Errorf("%+v", o)
	}
}
