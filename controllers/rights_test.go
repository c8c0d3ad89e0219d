package controllers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/runner/contract"
)

// seldomUsed are rights that the test sees no use of.
var seldomUsed = map[string]string{
	right("list", v1alpha1.GroupVersion.Group, "dbbenchmarks"): "for API servers that do not send what exists when a watch begins",
	right("get", "", "configmaps"):                             "to learn what an earlier process has stored",
	right("get", "batch", "jobs"):                              "to look at a Job whose name is taken",
	right("patch", "events.k8s.io", "events"):                  "to count an event that happens again and again",
}

// TestRights has the controller work with the rights of config/rbac/role.yaml alone,
// and sees that it needs all of them.
func TestRights(t *testing.T) {
	text, err := os.ReadFile("../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 2)
	used := w.startAs(&role)
	w.useAll()

	granted := map[string]bool{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[right(verb, group, resource)] = true
				}
			}
		}
	}
	// Some requests come after what the test waits for, such as the last event.
	unused := func() []string {
		rights := maps.Clone(granted)
		maps.DeleteFunc(rights, func(r string, _ bool) bool { return used()[r] || seldomUsed[r] != "" })
		return slices.Sorted(maps.Keys(rights))
	}
	for end := time.Now().Add(testPatience / 4); len(unused()) > 0 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	for _, r := range unused() {
		t.Errorf("granted, and not used: %s", r)
	}
	for r := range used() {
		if !granted[r] {
			t.Errorf("used, and not granted: %s", r)
		}
	}
}

func right(verb, group, resource string) string {
	if group == "" {
		group = "core"
	}
	return fmt.Sprintf("%s %s in %s", verb, resource, group)
}

// useAll takes benchmarks through all that a controller does for them.
func (w *world) useAll() {
	key := w.create(w.bench("well"))
	w.complete(key, 3)
	// Pods that share a run find each other by a Service.
	w.create(w.bench("pair", func(b *v1alpha1.DBBenchmark) { b.Spec.Runner.Replicas, b.Spec.Targets[0].Host = 2, "other" }))
	// A second execution prunes the results of the first.
	w.change(key, func(b *v1alpha1.DBBenchmark) { b.Spec.HistoryLimit, b.Spec.Iterations = new(int32(1)), 1 })
	w.until(key, v1alpha1.ReasonComplete)
	if err := w.Delete(w.Context(), w.get(key)); err != nil {
		w.Fatal(err)
	}
	// Several pods find each other by a Service.
	w.until(w.create(w.bench("several", func(b *v1alpha1.DBBenchmark) { b.Spec.Runner.Replicas = 2 })), v1alpha1.ReasonInvalidRecord) // both pods have the same report
	// A pod that does not start has its events read.
	w.kubelet.set(func() {
		w.kubelet.end = func(*contract.RunSpec) ending {
			return ending{warning: "secret \"nobody\" not found", state: &corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
		}
	})
	w.offset.Store(int64(time.Minute))
	stuck := w.create(w.bench("stuck"))
	w.until(stuck, v1alpha1.ReasonSecretNotFound)
}

// startAs runs a controller as a service account that has the role. What it returns
// gives the rights that were used so far.
func (w *world) startAs(role *rbacv1.ClusterRole) (used func() map[string]bool) {
	w.Helper()
	account := w.namespaces[1]
	role.Name, role.ResourceVersion = account, ""
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}}}
	if err := w.Create(w.Context(), role); err != nil {
		w.Fatal(err)
	}
	if err := w.Create(w.Context(), binding); err != nil {
		w.Fatal(err)
	}
	limited := rest.CopyConfig(testConfig)
	limited.Impersonate = rest.ImpersonationConfig{UserName: account}
	var mu sync.Mutex
	seen := map[string]bool{}
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return noting(next, &mu, seen) })

	mgr, err := ctrl.NewManager(limited, ctrl.Options{
		Scheme: newScheme(), Cache: CacheOptions(""), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.Fatal(err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Logs: apiLogs{PodLogs{kubernetes.NewForConfigOrDie(limited)}, w.kubelet},
		Events: mgr.GetEventRecorder("test"), Image: "runner:test", Now: func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) },
	}
	ctx, cancel := context.WithCancel(background)
	if err := r.SetupWithManager(ctx, mgr); err != nil {
		w.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		<-ended
	})
	return func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(seen)
	}
}

// apiLogs asks the API for a log, as a controller does, and the kubelet for its content.
type apiLogs struct {
	api     LogReader
	kubelet *kubelet
}

func (l apiLogs) Read(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	// There is no node to ask, but the right to was looked at.
	if _, err := l.api.Read(ctx, namespace, pod); apierrors.IsForbidden(err) {
		return nil, err
	}
	return l.kubelet.Read(ctx, namespace, pod)
}

func (l apiLogs) Tail(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	return l.kubelet.Tail(ctx, namespace, pod)
}

// noting notes the right that each request to a resource takes, whatever its answer.
func noting(next http.RoundTripper, mu *sync.Mutex, seen map[string]bool) http.RoundTripper {
	parse := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if info, err := parse.NewRequestInfo(r); err == nil && info.IsResourceRequest {
			resource := info.Resource
			if info.Subresource != "" {
				resource += "/" + info.Subresource
			}
			mu.Lock()
			seen[right(info.Verb, info.APIGroup, resource)] = true
			mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}
