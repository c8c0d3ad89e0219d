package main

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
)

var errDeleted = errors.New("it was deleted")

// watchUntilEnd calls saw with each state of a benchmark until its execution has ended.
// A watch that breaks is taken up again.
func watchUntilEnd(ctx context.Context, c *cluster, t target, saw func(*v1alpha1.DBBenchmark)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	_, err := watchtools.UntilWithSync(ctx, listWatch(c, t, fail), &v1alpha1.DBBenchmark{}, nil, func(event watch.Event) (bool, error) {
		b, ok := event.Object.(*v1alpha1.DBBenchmark)
		switch {
		case event.Type == watch.Deleted:
			return false, errDeleted
		case !ok:
			return false, nil
		}
		saw(b)
		return stateOf(b, t.stale).ended, nil
	})
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// listWatch lists and watches one benchmark. It is tried again and again, but where the
// user may not: that fails.
func listWatch(c *cluster, t target, fail context.CancelCauseFunc) cache.ListerWatcher {
	refused := func(err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			fail(err)
		}
		return err
	}
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{
			Namespace: t.key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", t.key.Name), Raw: &raw,
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.DBBenchmarkList{}
			return list, refused(c.List(ctx, list, options(raw)))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			w, err := c.Watch(ctx, &v1alpha1.DBBenchmarkList{}, options(raw))
			return w, refused(err)
		},
	}
}
