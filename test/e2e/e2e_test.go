//go:build e2e

// Package e2e uses the operator as a user does: kubectl against a real Kubernetes,
// with a real MariaDB in it.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/test/cluster"
)

const (
	// namespace holds the benchmarks and enforces Pod Security's restricted profile.
	namespace = "dbbench-e2e"
	// serverNamespace holds the database.
	serverNamespace = "dbbench-e2e-db"
)

var kube *cluster.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	if err := setUp(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return m.Run()
}

func setUp(ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	if kube, err = cluster.Sandbox(ctx, root, os.Stderr); err != nil {
		return err
	}
	if err := kube.Install(ctx); err != nil {
		return err
	}
	// What an earlier run left would change what the tests see.
	if _, err := kube.Kubectl(ctx, "delete", "namespace", namespace, serverNamespace, "--ignore-not-found", "--timeout=180s"); err != nil {
		return err
	}
	if err := kube.Apply(ctx, namespaces); err != nil {
		return err
	}
	return startServers(ctx)
}

// startServers starts the databases of the samples, and gives the benchmarks' namespace
// the Secrets of their users.
func startServers(ctx context.Context) error {
	if err := kube.LoadServer(ctx, "mysql"); err != nil {
		return err
	}
	for _, server := range []string{"mariadb", "mysql"} {
		if _, err := kube.Kubectl(ctx, "-n", serverNamespace, "apply", "-f", "config/samples/"+server+".yaml"); err != nil {
			return err
		}
		if err := kube.Apply(ctx, secret(server+"-bench", password), "-n", namespace); err != nil {
			return err
		}
	}
	_, err := kube.Kubectl(ctx, "-n", serverNamespace, "rollout", "status", "deployment/mariadb", "deployment/mysql", "--timeout=180s")
	return err
}

var namespaces = fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: Namespace
metadata: {name: %s}
`, namespace, serverNamespace)

// password is that of the user bench in config/samples/mariadb.yaml.
const password = "change-me"

func secret(name, password string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {username: bench, password: %q}\n", name, password)
}

// benchmark is a manifest of a short benchmark; spec lines given in change replace
// the ones of the same key.
func benchmark(name string, change map[string]string) string {
	lines := []struct{ key, text string }{
		{"targets", fmt.Sprintf("[{name: mariadb, host: mariadb.%s.svc, database: e2e, credentialsSecretRef: {name: mariadb-bench}}]", serverNamespace)},
		{"workload", "{slap: {loadType: Write, engine: InnoDB, autoIncrement: true}}"},
		{"load", "{clients: 2, eventsPerClient: 50}"},
		{"iterations", "1"},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: dbbench.dev/v1alpha1\nkind: DBBenchmark\nmetadata: {name: %s}\nspec:\n", name)
	for _, l := range lines {
		if changed, ok := change[l.key]; ok {
			l.text = changed
		}
		fmt.Fprintf(&text, "  %s: %s\n", l.key, l.text)
		delete(change, l.key)
	}
	for key, value := range change {
		fmt.Fprintf(&text, "  %s: %s\n", key, value)
	}
	return text.String()
}

// apply applies a manifest in the benchmarks' namespace and has it deleted at the end.
func apply(t *testing.T, name, manifest string) types.NamespacedName {
	t.Helper()
	if err := kube.Apply(t.Context(), manifest, "-n", namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := kube.Kubectl(context.Background(), "-n", namespace, "delete", "dbb", name, "--ignore-not-found", "--timeout=90s")
		if err != nil {
			t.Error(err)
		}
	})
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// waitFor polls the resource until f holds.
func waitFor(t *testing.T, key types.NamespacedName, limit time.Duration, what string, f func(*v1alpha1.DBBenchmark) bool) *v1alpha1.DBBenchmark {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		b, err := kube.Benchmark(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if f(b) {
			return b
		}
		if time.Now().After(end) {
			text, _ := kube.Kubectl(t.Context(), "-n", key.Namespace, "get", "dbb,jobs,pods,events", "-o", "wide")
			t.Fatalf("%s is not %s after %s: %s\n%+v\n%s", key.Name, what, limit, cluster.Progress(b), b.Status.Conditions, text)
		}
	}
}

// sql runs a statement as root in the database's pod and returns its rows.
func sql(t *testing.T, statement string) string {
	t.Helper()
	text, err := kube.Kubectl(t.Context(), "-n", serverNamespace, "exec", "deployment/mariadb", "--",
		"mariadb", "--socket=/run/mysqld/mysqld.sock", "-ubench", "-p"+password, "-N", "-B", "-e", statement)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text)
}
