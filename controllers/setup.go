package controllers

import (
	"context"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/runner/contract"
)

// workers is the number of benchmarks that are seen to at the same time.
const workers = 8

// CacheOptions restrict the cache to what the controller reads from it: its own kind,
// and the Jobs and pods that bear its label. An empty namespace means all.
func CacheOptions(namespace string) cache.Options {
	ours, err := labels.NewRequirement(resources.LabelUID, selection.Exists, nil)
	if err != nil {
		panic(err) // the key is a constant
	}
	own := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&batchv1.Job{}: own, &corev1.Pod{}: own},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	return options
}

// SetupWithManager has the manager call the reconciler where it may have work.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.DBBenchmark{}, indexServers, func(o client.Object) []string {
		return plan.ServerKeys(o.(*v1alpha1.DBBenchmark))
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.DBBenchmark{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOfPod)).
		Watches(&v1alpha1.DBBenchmark{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(claimChanges())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.waitingForPod), builder.WithPredicates(podEnds())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// ownerOfPod is the benchmark of a runner pod. Its name may be too long for a label.
func ownerOfPod(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[resources.AnnotationBenchmark]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// waiting are the benchmarks that may come on when another gives way.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	others, err := neighbours(ctx, r.Client, o.(*v1alpha1.DBBenchmark))
	if err != nil {
		log.FromContext(ctx).Error(err, "list the benchmarks of a server")
	}
	return claimants(others)
}

func claimants(all []v1alpha1.DBBenchmark) []reconcile.Request {
	var requests []reconcile.Request
	for i := range all {
		if _, ok := plan.ClaimOf(&all[i]); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}

// waitingForPod are the benchmarks on the server that a pod was at work on.
func (r *Reconciler) waitingForPod(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.DBBenchmarkList
	if err := r.Client.List(ctx, &list, client.MatchingFields{indexServers: o.GetLabels()[resources.LabelServer]}); err != nil {
		log.FromContext(ctx).Error(err, "list the benchmarks of a server")
	}
	return claimants(list.Items)
}

// claimChanges are the moments at which the queue of a server moves.
func claimChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, had := plan.ClaimOf(e.ObjectOld.(*v1alpha1.DBBenchmark))
			after, has := plan.ClaimOf(e.ObjectNew.(*v1alpha1.DBBenchmark))
			return had && (!has || before != after)
		},
	}
}

// podEnds are the moments at which a pod stops working on a server.
func podEnds() predicate.Predicate {
	ended := func(o client.Object) bool { return plan.Attempt{Pods: []corev1.Pod{*o.(*corev1.Pod)}}.Quiet() }
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return ended(e.ObjectNew) && !ended(e.ObjectOld) },
	}
}

// PodLogs reads logs through the API.
type PodLogs struct{ Clientset kubernetes.Interface }

// Read implements LogReader.
func (l PodLogs) Read(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	return l.Clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: plan.RunnerContainer, LimitBytes: new(int64(contract.MaxRecordBytes) + 1),
	}).Stream(ctx)
}

// Tail implements LogReader.
func (l PodLogs) Tail(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
	const lines, bytes = 10, 64 << 10
	return l.Clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: plan.RunnerContainer, TailLines: new(int64(lines)), LimitBytes: new(int64(bytes)),
	}).Stream(ctx)
}
