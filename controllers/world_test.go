package controllers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// world is a cluster with namespaces of its own, in which the test plays the Job
// controller, the kubelet and the runner.
type world struct {
	*testing.T
	client.Client
	namespaces []string
	kubelet    *kubelet
	offset     atomic.Int64 // of the controller's clock, in nanoseconds
}

var worlds atomic.Int64

// newWorld makes a world of n namespaces.
func newWorld(t *testing.T, n int) *world {
	t.Helper()
	c, err := client.New(testConfig, client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c}
	number := worlds.Add(1)
	for i := range n {
		name := fmt.Sprintf("world-%d-%d", number, i)
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
		w.namespaces = append(w.namespaces, name)
	}
	w.kubelet = newKubelet(w)
	t.Cleanup(w.clear)
	return w
}

// clear frees the servers that later tests use.
func (w *world) clear() {
	w.kubelet.stop()
	for _, ns := range w.namespaces {
		var list v1alpha1.DBBenchmarkList
		if err := w.List(background, &list, client.InNamespace(ns)); err != nil {
			w.Error(err)
		}
		for i := range list.Items {
			b := &list.Items[i]
			before := b.DeepCopy()
			b.Finalizers = nil
			_ = w.Patch(background, b, client.MergeFrom(before))
			_ = w.Delete(background, b)
		}
	}
}

// bench is a benchmark of three runs.
func (w *world) bench(name string, change ...func(*v1alpha1.DBBenchmark)) *v1alpha1.DBBenchmark {
	b := &v1alpha1.DBBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespaces[0], Name: name}}
	b.Spec.Targets = []v1alpha1.Target{{Name: "mariadb", Host: "mariadb", CredentialsSecretRef: v1alpha1.CredentialsSecretReference{Name: "mariadb-bench"}}}
	b.Spec.Workload.Slap = &v1alpha1.Slap{LoadType: v1alpha1.SlapWrite, AutoIncrement: true}
	b.Spec.Load.Clients = 2
	b.Spec.Iterations = 3
	for _, c := range change {
		c(b)
	}
	return b
}

func (w *world) create(b *v1alpha1.DBBenchmark) client.ObjectKey {
	w.Helper()
	if err := w.Create(w.Context(), b); err != nil {
		w.Fatal(err)
	}
	return client.ObjectKeyFromObject(b)
}

func (w *world) get(key client.ObjectKey) *v1alpha1.DBBenchmark {
	w.Helper()
	var b v1alpha1.DBBenchmark
	if err := w.Get(w.Context(), key, &b); err != nil {
		w.Fatal(err)
	}
	return &b
}

func (w *world) change(key client.ObjectKey, f func(*v1alpha1.DBBenchmark)) {
	w.Helper()
	b := w.get(key)
	before := b.DeepCopy()
	f(b)
	if err := w.Patch(w.Context(), b, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// patience is for a loaded machine; no test takes it when all is well.
const testPatience = 60 * time.Second

func (w *world) eventually(what string, f func() bool) {
	w.Helper()
	for end := time.Now().Add(testPatience); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %s: %s", testPatience, what)
		}
	}
}

// until waits for Ready to have a reason, and for the status to speak of the spec.
func (w *world) until(key client.ObjectKey, reason string) *v1alpha1.DBBenchmark {
	w.Helper()
	var b *v1alpha1.DBBenchmark
	defer func() {
		if w.Failed() {
			w.Logf("status: %+v", b.Status)
		}
	}()
	w.eventually(key.String()+" is "+reason, func() bool {
		b = w.get(key)
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == reason && c.ObservedGeneration == b.Generation
	})
	return b
}

// results are the stored results of an execution by run; a run that is stored twice is
// an error.
func (w *world) results(b *v1alpha1.DBBenchmark, execution string) map[string]results.Envelope {
	w.Helper()
	var list corev1.ConfigMapList
	if err := w.List(w.Context(), &list, client.InNamespace(b.Namespace), client.MatchingLabels{resources.LabelUID: string(b.UID), resources.LabelExecution: execution, resources.LabelPurpose: resources.PurposeResults}); err != nil {
		w.Fatal(err)
	}
	all := map[string]results.Envelope{}
	for _, cm := range list.Items {
		for key, text := range cm.Data {
			e, err := results.Decode(key, text)
			if err != nil {
				w.Fatal(err)
			}
			if _, twice := all[e.Run]; twice {
				w.Errorf("%s is stored twice", e.Run)
			}
			all[e.Run] = e
		}
	}
	return all
}

// complete checks that a benchmark has ended well, with each run done and stored once.
func (w *world) complete(key client.ObjectKey, runs int) *v1alpha1.DBBenchmark {
	w.Helper()
	b := w.until(key, v1alpha1.ReasonComplete)
	if !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionComplete) {
		w.Errorf("conditions: %+v", b.Status.Conditions)
	}
	if got := len(w.results(b, b.Status.Execution.ID)); got != runs {
		w.Errorf("%d results, want %d", got, runs)
	}
	w.once(b, runs)
	return b
}

// once checks that each run's Job was made exactly once.
func (w *world) once(b *v1alpha1.DBBenchmark, runs int) {
	w.Helper()
	made := w.kubelet.made(b.UID, b.Status.Execution.ID)
	if len(made) != runs {
		w.Errorf("%d runs were started, want %d: %v", len(made), runs, made)
	}
	for run, n := range made {
		if n != 1 {
			w.Errorf("%s was started %d times", run, n)
		}
	}
}

// manager is a controller that runs until it is stopped.
type manager struct {
	stop   func()
	writes atomic.Int64
	// requests counts all but events and the opening of watches.
	requests atomic.Int64
}

// counted has the requests of a manager counted.
func (m *manager) counted(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" && !strings.Contains(r.URL.Path, "/events") {
				m.requests.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start runs a controller with a cold cache. fault is asked before each write, and
// may refuse it; done is told of each write that was made.
func (w *world) start(fault func(kind string) error, done func(m *manager), readers ...interceptor.Funcs) *manager {
	w.Helper()
	ctx, cancel := context.WithCancel(background)
	m := &manager{}
	write := func(kind string, do func() error) error {
		if ctx.Err() != nil {
			return context.Canceled
		}
		if fault != nil {
			if err := fault(kind); err != nil {
				return err
			}
		}
		err := do()
		if err == nil {
			m.writes.Add(1)
			if done != nil {
				done(m)
			}
		}
		return err
	}
	funcs := writesThrough(write)
	if len(readers) > 0 {
		funcs.List, funcs.Get = readers[0].List, readers[0].Get
	}
	namespace := ""
	if len(w.namespaces) == 1 {
		namespace = w.namespaces[0]
	}
	mgr, err := ctrl.NewManager(m.counted(testConfig), ctrl.Options{
		Scheme: newScheme(), Cache: CacheOptions(namespace), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		NewClient: func(c *rest.Config, o client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(c, o)
			return interceptor.NewClient(inner, funcs), err
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Logs: w.kubelet, Events: mgr.GetEventRecorder("test"),
		Image: "runner:test", Namespace: namespace, Now: func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) },
	}
	if err := r.SetupWithManager(ctx, mgr); err != nil {
		w.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	w.Cleanup(m.stop)
	return m
}

// writesThrough has every write of a client pass a gate.
func writesThrough(write func(kind string, do func() error) error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(fmt.Sprintf("create %T", o), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(fmt.Sprintf("delete %T", o), func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(fmt.Sprintf("patch %T", o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(fmt.Sprintf("patch %s of %T", sub, o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}
}

// kubelet plays the Job controller and the node: it makes a pod for each Job, and ends
// it as the test wants.
type kubelet struct {
	w    *world
	stop func()

	mu sync.Mutex
	// end is what becomes of a pod.
	end func(spec *contract.RunSpec) ending
	// hold keeps pods from ending while it is true.
	hold   bool
	seen   map[types.UID]bool
	counts map[string]int
	logs   map[string]string
	tails  map[string]string // of pods at work
	most   map[string]int    // pods at work at the same time, by server
}

// ending is how a pod ends, or does not.
type ending struct {
	code    int32
	log     string
	state   *corev1.ContainerState // instead of an end
	warning string                 // an event about the pod
	// disruption is why the pod was taken away.
	disruption string
	// replica says how each of several pods ends, instead.
	replica func(index int) ending
}

func newKubelet(w *world) *kubelet {
	k := &kubelet{w: w, end: func(s *contract.RunSpec) ending { return ending{log: record(s)} },
		seen: map[types.UID]bool{}, counts: map[string]int{}, logs: map[string]string{}, tails: map[string]string{}, most: map[string]int{}}
	quit, done := make(chan struct{}), make(chan struct{})
	k.stop = sync.OnceFunc(func() { close(quit); <-done })
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
				for _, ns := range w.namespaces {
					k.tick(ns)
				}
			}
		}
	}()
	return k
}

func (k *kubelet) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// made counts the Jobs of an execution by run.
func (k *kubelet) made(uid types.UID, execution string) map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	made := map[string]int{}
	for key, n := range k.counts {
		if run, ok := strings.CutPrefix(key, string(uid)+"/"+execution+"/"); ok {
			made[run] = n
		}
	}
	return made
}

// Read implements LogReader.
func (k *kubelet) Read(_ context.Context, namespace, pod string) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, ok := k.logs[namespace+"/"+pod]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// Tail implements LogReader.
func (k *kubelet) Tail(_ context.Context, _, pod string) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return io.NopCloser(strings.NewReader(k.tails[pod])), nil
}

func (k *kubelet) tick(ns string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var jobs batchv1.JobList
	var pods corev1.PodList
	if k.w.List(background, &jobs, client.InNamespace(ns)) != nil || k.w.List(background, &pods, client.InNamespace(ns)) != nil {
		return
	}
	exists := map[types.UID]bool{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		exists[j.UID] = true
		if !k.seen[j.UID] {
			k.seen[j.UID] = true
			l := j.Labels
			k.counts[l[resources.LabelUID]+"/"+l[resources.LabelExecution]+"/"+l[resources.LabelRun]]++
			for i := range *j.Spec.Completions {
				k.makePod(j, i)
			}
		}
	}
	atWork := map[string]int{}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		switch {
		case owner == nil || !exists[owner.UID] || p.DeletionTimestamp != nil:
			_ = k.w.Delete(background, p, client.GracePeriodSeconds(0))
		case p.Status.Phase == corev1.PodRunning:
			atWork[p.Labels[resources.LabelServer]]++
			if !k.hold {
				k.endPod(p)
			}
		}
	}
	for server, n := range atWork {
		k.most[server] = max(k.most[server], n)
	}
}

func (k *kubelet) makePod(j *batchv1.Job, index int32) {
	p := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: *j.Spec.Template.Spec.DeepCopy()}
	p.Namespace, p.Name = j.Namespace, fmt.Sprintf("%s-%d", j.Name, index)
	p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(int(index))
	p.Spec.NodeName = "node"
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if err := k.w.Create(background, p); err != nil {
		k.w.Errorf("the pod is refused: %v", err)
		return
	}
	k.status(p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

func (k *kubelet) status(p *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) {
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: plan.RunnerContainer, Image: "runner:test", State: state}}
	if err := k.w.Status().Update(background, p); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		k.w.Errorf("status of a pod: %v", err)
	}
}

func (k *kubelet) endPod(p *corev1.Pod) {
	spec, err := contract.DecodeRunSpec([]byte(p.Annotations[resources.AnnotationRunSpec]))
	if err != nil {
		k.w.Errorf("the runner refuses its spec: %v", err)
		return
	}
	index, err := strconv.Atoi(p.Labels[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		k.w.Errorf("a pod without an index: %v", err)
	}
	e := k.end(spec)
	if e.replica != nil {
		e = e.replica(index)
	}
	if p.Labels[resources.LabelPurpose] == resources.PurposeCleanup {
		e = ending{}
	}
	if e.warning != "" {
		_ = k.w.Create(background, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "warning-"}, Type: corev1.EventTypeWarning,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Reason: "FailedMount", Message: e.warning,
		})
	}
	if e.state != nil {
		k.status(p, corev1.PodPending, *e.state)
		return
	}
	k.logs[p.Namespace+"/"+p.Name] = e.log
	if e.disruption != "" {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: e.disruption})
	}
	phase := corev1.PodSucceeded
	if e.code != 0 {
		phase = corev1.PodFailed
	}
	k.status(p, phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		// Some time ago, so that a log that is cut off is taken as it is.
		ExitCode: e.code, FinishedAt: metav1.NewTime(time.Now().Add(-logDelay)),
	}})
}

func numbers(values ...int) (all []apiextensionsv1.JSON) {
	for _, v := range values {
		all = append(all, apiextensionsv1.JSON{Raw: []byte(strconv.Itoa(v))})
	}
	return all
}

// record is the log of a run that went well.
func record(s *contract.RunSpec, change ...func(*contract.Record)) string {
	h := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
	const events = 100
	for i := range int64(events) {
		_ = h.RecordValue((i + 1) * 10000)
	}
	encoded, _ := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	r := contract.Record{
		Start:       contract.Start{Run: s.Run.ID, Execution: s.Run.Execution, BenchmarkUID: s.Run.BenchmarkUID, RunnerVersion: "test"},
		Environment: contract.Environment{ServerVersion: "10.11", ServerFlavor: "MariaDB", Runner: contract.RunnerUsage{ThrottledNanos: -1}},
		Operations:  []contract.Operation{{Name: "insert", Count: events, SumNanos: 50500000, MinNanos: 10000, MaxNanos: 1000000, Histogram: string(encoded)}},
		Result: contract.Result{Outcome: contract.OutcomeSucceeded, Clients: s.Load.Clients, MeasureStartUnixNanos: 1,
			ElapsedNanos: time.Second.Nanoseconds(), Events: events, Attempts: events, Writes: events},
	}
	for _, c := range change {
		c(&r)
	}
	var b bytes.Buffer
	enc := contract.NewEncoder(&b)
	_ = enc.Start(r.Start)
	_ = enc.Environment(r.Environment)
	for _, op := range r.Operations {
		_ = enc.Operation(op)
	}
	_ = enc.Result(r.Result)
	_ = enc.End()
	return b.String()
}
