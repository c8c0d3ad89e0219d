// Command demo does the project's main job from nothing: a Kubernetes cluster, a
// MariaDB in it, the operator, one benchmark, and its table, read back from the
// resource.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/test/cluster"
)

const (
	namespace = "dbbench-demo"
	server    = "config/samples/mariadb.yaml"
	benchmark = "config/samples/seed1-mysqlslap-insert-smoke.yaml"
	// patience bounds the wait for the benchmark's end.
	patience = 15 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	which := flags.String("cluster", "sandbox", "sandbox, or current for the cluster of DBBENCH_KUBECONFIG or of kubectl's current context")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	c, err := connect(ctx, *which, root, stderr)
	if err != nil {
		return err
	}
	if err := c.Install(ctx); err != nil {
		return err
	}
	bench, err := apply(ctx, c)
	if err != nil {
		return err
	}
	if err := follow(ctx, c, bench, stderr); err != nil {
		return err
	}
	return show(ctx, c, bench, stdout)
}

func connect(ctx context.Context, which, root string, out io.Writer) (*cluster.Cluster, error) {
	switch which {
	case "sandbox":
		return cluster.Sandbox(ctx, root, out)
	case "current":
		return cluster.Current(root, os.Getenv("DBBENCH_KUBECONFIG"), out), nil
	}
	return nil, fmt.Errorf("--cluster=%s: it is sandbox or current", which)
}

// apply brings up the database and starts the benchmark anew.
func apply(ctx context.Context, c *cluster.Cluster) (types.NamespacedName, error) {
	key := types.NamespacedName{Namespace: namespace}
	if err := c.EnsureNamespace(ctx, namespace); err != nil {
		return key, err
	}
	if _, err := c.Kubectl(ctx, "-n", namespace, "apply", "--server-side", "-f", server); err != nil {
		return key, err
	}
	if _, err := c.Kubectl(ctx, "-n", namespace, "rollout", "status", "deployment/mariadb", "--timeout=180s"); err != nil {
		return key, err
	}
	text, err := os.ReadFile(filepath.Join(c.Root, benchmark))
	if err != nil {
		return key, err
	}
	var bench v1alpha1.DBBenchmark
	if err := yaml.Unmarshal(text, &bench); err != nil {
		return key, fmt.Errorf("%s: %w", benchmark, err)
	}
	key.Name = bench.Name
	if _, err := c.Kubectl(ctx, "-n", namespace, "delete", "dbb", key.Name, "--ignore-not-found", "--timeout=120s"); err != nil {
		return key, err
	}
	_, err = c.Kubectl(ctx, "-n", namespace, "apply", "-f", benchmark)
	return key, err
}

// follow prints the progress until the benchmark has ended.
func follow(ctx context.Context, c *cluster.Cluster, key types.NamespacedName, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := ""
	for {
		bench, err := c.Benchmark(ctx, key)
		if err != nil {
			return err
		}
		if line := cluster.Progress(bench); line != last {
			fmt.Fprintln(out, line)
			last = line
		}
		if cluster.Ended(bench) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not end within %s: %w", key.Name, patience, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// show prints what the resource holds.
func show(ctx context.Context, c *cluster.Cluster, key types.NamespacedName, out io.Writer) error {
	listing, err := c.Kubectl(ctx, "-n", key.Namespace, "get", "dbb", key.Name, "-o", "wide")
	if err != nil {
		return err
	}
	bench, err := c.Benchmark(ctx, key)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "$ kubectl -n %s get dbb %s -o wide\n%s\n", key.Namespace, key.Name, listing)
	if err := results.WriteMatrix(out, bench); err != nil {
		return err
	}
	if !cluster.Complete(bench) {
		return errors.New("the benchmark failed; its conditions say why")
	}
	return nil
}
