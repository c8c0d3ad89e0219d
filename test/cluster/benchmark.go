package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"dbbench.dev/operator/api/v1alpha1"
)

// EnsureNamespace creates a namespace that enforces Pod Security's restricted
// profile for the runner and leaves the database's pod its own needs.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	return c.Apply(ctx, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %q}\n", name))
}

// Benchmark reads a DBBenchmark.
func (c *Cluster) Benchmark(ctx context.Context, key types.NamespacedName) (*v1alpha1.DBBenchmark, error) {
	text, err := c.Kubectl(ctx, "-n", key.Namespace, "get", "dbb", key.Name, "-o", "json")
	if err != nil {
		return nil, err
	}
	var bench v1alpha1.DBBenchmark
	if err := json.Unmarshal([]byte(text), &bench); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return &bench, nil
}

// Complete reports whether every run of the current spec succeeded.
func Complete(b *v1alpha1.DBBenchmark) bool { return holds(b, v1alpha1.ConditionComplete) }

// Failed reports whether the current spec's execution has failed.
func Failed(b *v1alpha1.DBBenchmark) bool { return holds(b, v1alpha1.ConditionFailed) }

// Ended reports whether the current spec's execution is over.
func Ended(b *v1alpha1.DBBenchmark) bool { return Complete(b) || Failed(b) }

func holds(b *v1alpha1.DBBenchmark, condition string) bool {
	return b.Status.ObservedGeneration == b.Generation && meta.IsStatusConditionTrue(b.Status.Conditions, condition)
}

// Progress is one line on where the execution stands.
func Progress(b *v1alpha1.DBBenchmark) string {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return b.Name + ": waiting for the controller"
	}
	line := b.Name + ": " + ready.Reason
	if e := b.Status.Execution; e != nil {
		line += ", " + e.Progress + " runs"
	}
	if Failed(b) {
		line += ": " + ready.Message
	}
	return line
}
