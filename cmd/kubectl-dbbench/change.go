package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
)

func newCancel(e *env) *cobra.Command {
	return forEach(e, &cobra.Command{
		Use:   "cancel NAME...",
		Short: "Start no further run of a benchmark",
		Long: `Start no further run of a benchmark: spec.suspend becomes true. The run under way ends by
itself, and what was measured stays.

kubectl dbbench resume goes on where it stopped, kubectl dbbench rerun starts anew.`,
		Example: "  kubectl dbbench cancel nightly",
	}, "cancelled", suspend)
}

func newResume(e *env) *cobra.Command {
	return forEach(e, &cobra.Command{
		Use:     "resume NAME...",
		Short:   "Go on with a benchmark that was cancelled",
		Long:    "Go on with a benchmark that kubectl dbbench cancel has suspended, where it stopped.",
		Example: "  kubectl dbbench resume nightly",
	}, "resumed", resume)
}

func newRerun(e *env) *cobra.Command {
	return forEach(e, &cobra.Command{
		Use:   "rerun NAME...",
		Short: "Run a benchmark once more",
		Long: `Run a benchmark once more: the annotation ` + v1alpha1.AnnotationRunRequestedAt + ` becomes the current time.
An execution under way is cancelled. The results of earlier ones stay, as many as
spec.historyLimit says.`,
		Example: "  kubectl dbbench rerun nightly",
	}, "rerun requested", rerun)
}

// forEach completes a command that does something to each of the benchmarks named.
func forEach(e *env, cmd *cobra.Command, done string, do func(context.Context, *env, *cluster, *v1alpha1.DBBenchmark) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError("name a benchmark\nSee '%s --help'", cmd.CommandPath())
		}
		return nil
	}
	cmd.ValidArgsFunction = e.completeNames(1 << 10)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		c, err := e.connect()
		if err != nil {
			return err
		}
		for _, name := range names {
			b := &v1alpha1.DBBenchmark{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, b); err != nil {
				return err
			}
			if err := do(cmd.Context(), e, c, b); err != nil {
				return err
			}
			fmt.Fprintf(e.Out, "dbbenchmark.dbbench.dev/%s %s\n", name, done)
		}
		return nil
	}
	return cmd
}

// rerun asks for an execution, and lifts a suspension that the plugin has set.
func rerun(ctx context.Context, e *env, c *cluster, b *v1alpha1.DBBenchmark) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.AnnotationRunRequestedAt: e.now().UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, b, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	if !b.Spec.Suspend {
		return nil
	}
	return resume(ctx, e, c, b)
}

// suspend sets spec.suspend, as a manager that owns nothing else.
func suspend(ctx context.Context, _ *env, c *cluster, b *v1alpha1.DBBenchmark) error {
	return c.Apply(ctx, suspension(b, map[string]any{"suspend": true}), client.FieldOwner(suspendManager), client.ForceOwnership)
}

// resume gives the field up, which removes it unless somebody else wants it too.
func resume(ctx context.Context, _ *env, c *cluster, b *v1alpha1.DBBenchmark) error {
	if err := c.Apply(ctx, suspension(b, map[string]any{}), client.FieldOwner(suspendManager), client.ForceOwnership); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
		return err
	}
	if b.Spec.Suspend {
		return fmt.Errorf("%s stays suspended: spec.suspend was set by another manager, such as from a file; change it there", b.Name)
	}
	return nil
}

func suspension(b *v1alpha1.DBBenchmark, spec map[string]any) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("DBBenchmark"))
	u.SetNamespace(b.Namespace)
	u.SetName(b.Name)
	return client.ApplyConfigurationFromUnstructured(u)
}
