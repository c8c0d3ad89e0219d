package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"dbbench.dev/operator/api/v1alpha1"
)

// parallel is how many things the simulation itself does at the same time.
const parallel = 8

// startTimeout is for a machine that has other things to do.
const startTimeout = 3 * time.Minute

// cluster is a control plane with one node that is not there.
type cluster struct {
	client.Client
	env        *envtest.Environment
	cache      cache.Cache
	kubeconfig string // of the manager
	server     *httptest.Server
	kubelet    *kubelet
	cancel     context.CancelFunc
	group      *errgroup.Group
}

func startCluster(dir string) (*cluster, error) {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1alpha1.AddToScheme(scheme)
	c := &cluster{env: &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: startTimeout}}
	config, err := c.env.Start()
	if err != nil {
		return nil, fmt.Errorf("start kube-apiserver and etcd: %w", err)
	}
	config.QPS = -1
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if c.cache, err = cache.New(config, cache.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	user, err := c.env.AddUser(envtest.User{Name: "manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return nil, err
	}
	c.kubeconfig = filepath.Join(dir, "kubeconfig")
	return c, os.WriteFile(c.kubeconfig, text, 0o600)
}

// stop ends all that runs.
func (c *cluster) stop() error {
	if c.cancel != nil {
		c.cancel()
		_ = c.group.Wait() // it ends by being cancelled
		c.server.Close()
	}
	return c.env.Stop()
}

// startNode has Jobs get pods, and pods end.
func (c *cluster) startNode(ctx context.Context) error {
	c.kubelet = newKubelet(c.Client)
	c.server = httptest.NewTLSServer(http.HandlerFunc(c.kubelet.serveLog))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := c.Create(ctx, node); err != nil {
		return err
	}
	host, port := c.server.Listener.Addr().String(), int32(0)
	if _, err := fmt.Sscanf(host[strings.LastIndex(host, ":")+1:], "%d", &port); err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if err := c.Status().Update(ctx, node); err != nil {
		return err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.group, ctx = errgroup.WithContext(ctx)
	jobs, err := c.cache.GetInformer(ctx, &batchv1.Job{})
	if err != nil {
		return err
	}
	if _, err := jobs.AddEventHandler(c.kubelet.handler()); err != nil {
		return err
	}
	c.group.Go(func() error { return c.cache.Start(ctx) })
	for range parallel {
		c.group.Go(func() error { return c.kubelet.work(ctx) })
	}
	c.cache.WaitForCacheSync(ctx)
	return nil
}

// createBenchmarks spreads n benchmarks over namespaces and servers.
func (c *cluster) createBenchmarks(ctx context.Context, o options, n int) error {
	for i := range o.namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}}); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		b := &v1alpha1.DBBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%o.namespaces), Name: fmt.Sprintf("bench-%d", i)}}
		b.Spec.Targets = []v1alpha1.Target{{Name: "db", Host: fmt.Sprintf("db-%d.example.com", i%o.servers),
			CredentialsSecretRef: v1alpha1.CredentialsSecretReference{Name: "db"}}}
		b.Spec.Workload.Slap = &v1alpha1.Slap{LoadType: v1alpha1.SlapWrite, AutoIncrement: true}
		b.Spec.Load.Clients = 2
		b.Spec.Iterations = int32(o.runs)
		group.Go(func() error { return c.Create(ctx, b) })
	}
	return group.Wait()
}

// await waits until all benchmarks are complete and have left no Job behind.
func (c *cluster) await(ctx context.Context, n int, out io.Writer) error {
	for {
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
		var list v1alpha1.DBBenchmarkList
		if err := c.cache.List(ctx, &list); err != nil {
			return err
		}
		complete := 0
		for i := range list.Items {
			conditions := list.Items[i].Status.Conditions
			if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete) {
				complete++
			}
			if f := meta.FindStatusCondition(conditions, v1alpha1.ConditionFailed); f != nil && f.Status == metav1.ConditionTrue {
				return fmt.Errorf("%s failed: %s: %s", list.Items[i].Name, f.Reason, f.Message)
			}
		}
		var jobs batchv1.JobList
		if err := c.cache.List(ctx, &jobs); err != nil {
			return err
		}
		fmt.Fprintf(out, "\r%d of %d benchmarks, %d Jobs  ", complete, n, len(jobs.Items))
		if complete == n && len(jobs.Items) == 0 {
			fmt.Fprintln(out)
			return nil
		}
	}
}

// events counts those that the manager has made.
func (c *cluster) events(ctx context.Context) (int, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	err := c.List(ctx, &list)
	return len(list.Items), err
}

// metricsToken is that of an account which may read metrics, as Prometheus has one.
func (c *cluster) metricsToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prometheus"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}
	for _, o := range []client.Object{account, role, binding} {
		if err := c.Create(ctx, o); err != nil {
			return "", err
		}
	}
	return c.requestToken(ctx, account)
}
