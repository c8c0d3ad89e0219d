//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"dbbench.dev/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

// kubeconfig leads to a kube-apiserver and an etcd that all tests of the package share;
// admin is a client of it. There is no controller: tests write the status themselves.
var (
	kubeconfig string
	admin      client.Client
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	flag.Parse()
	silenceLog()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS must name the directory of kube-apiserver and etcd: run make test-envtest")
		return 1
	}
	dir, err := os.MkdirTemp("", "kubectl-dbbench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	if err := startCluster(environment, dir); err != nil {
		fmt.Fprintln(os.Stderr, "start kube-apiserver and etcd:", err)
		return 1
	}
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop kube-apiserver and etcd:", err)
		return 1
	}
	return code
}

func startCluster(environment *envtest.Environment, dir string) error {
	config, err := environment.Start()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, config)
	if err != nil {
		return err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return err
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		return err
	}
	// Discovery is cached in the home directory.
	return os.Setenv("HOME", dir)
}

// outcome is what a user sees of a command.
type outcome struct {
	stdout, stderr string
	code           int
}

// dbbench runs a command line as a process would.
func dbbench(ctx context.Context, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{stdout.String(), stderr.String(), code}
}

// age is what changes from one listing to the next.
var age = regexp.MustCompile(`\b[0-9]+s\b`)

func (o outcome) transcript(args []string) string {
	text := "$ kubectl dbbench " + strings.Join(args, " ") + "\n" + o.stdout
	if o.stderr != "" {
		text += "--- standard error\n" + o.stderr
	}
	if o.code != 0 {
		text += fmt.Sprintf("--- exit code %d\n", o.code)
	}
	return text
}

// golden compares a text with a file of testdata, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestWithoutCluster holds what needs no cluster to what it prints, and sees that it
// asks none.
func TestWithoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	bench, err := os.ReadFile("testdata/bench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		stdin string
		args  []string
	}{
		{name: "help"},
		{name: "plan", args: []string{"plan", "-f", "testdata/bench.yaml"}},
		{name: "plan-throughput", args: []string{"plan", "-f", "testdata/bench.yaml", "--throughput", "10"}},
		{name: "plan-timed", args: []string{"plan", "-f", "testdata/timed.yaml"}},
		{name: "plan-name", args: []string{"plan", "-f", "testdata/bench.yaml", "-o", "name"}},
		{name: "plan-json", args: []string{"plan", "-f", "testdata/timed.yaml", "-o", "json"}},
		{name: "plan-yaml", args: []string{"plan", "-f", "testdata/timed.yaml", "-o", "yaml"}},
		{name: "validate", args: []string{"validate", "-f", "testdata/bench.yaml", "-f", "testdata/timed.yaml"}},
		{name: "validate-stdin", args: []string{"validate", "-f", "-"}, stdin: string(bench)},
		{name: "validate-list", args: []string{"validate", "-f", "testdata/list.json"}},
		{name: "validate-directory", args: []string{"validate", "-R", "-f", "testdata/directory"}},
		{name: "validate-wrong", args: []string{"validate", "-f", "testdata/wrong.yaml"}},
		{name: "validate-nothing", args: []string{"validate", "-f", "testdata/secret.yaml"}},
		{name: "validate-missing", args: []string{"validate", "-f", "testdata/missing.yaml"}},
		{name: "validate-no-yaml", args: []string{"validate", "-f", "-"}, stdin: "kind: [\n"},
		{name: "usage-no-file", args: []string{"plan"}},
		{name: "usage-command", args: []string{"valdate"}},
		{name: "usage-flag", args: []string{"plan", "--file", "x"}},
		{name: "usage-output", args: []string{"plan", "-f", "testdata/bench.yaml", "-o", "xml"}},
		{name: "usage-argument", args: []string{"results"}},
		{name: "usage-password", args: []string{"run", "--local", "-f", "testdata/bench.yaml", "--password", "secret"}},
		{name: "usage-local", args: []string{"run", "-f", "testdata/bench.yaml", "--host", "localhost"}},
		{name: "no-cluster", args: []string{"get", "--server", "http://127.0.0.1:1"}},
		{name: "local-nobody", args: []string{"run", "--local", "-f", "testdata/bench.yaml"}},
		{name: "local-service", args: []string{"run", "--local", "-f", "testdata/service.yaml", "--username", "bench"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden(t, c.name, dbbench(t.Context(), c.stdin, c.args...).transcript(c.args))
		})
	}
}
