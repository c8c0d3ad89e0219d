// Package cluster brings a Kubernetes cluster to the state in which the operator
// can be used: the project's own sandbox, or the cluster of the current context. The
// demo and the end-to-end tests share it.
package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Image is the operator's image in a cluster that the project fills itself.
const Image = "dbbench.dev/operator:dev"

// Namespace is where config/default installs the manager.
const Namespace = "dbbench-system"

// Cluster is a cluster and the kubectl that speaks to it.
type Cluster struct {
	// Root is the top folder of the project.
	Root string
	// Kubeconfig is the path of a kubeconfig file; empty means kubectl's own choice.
	Kubeconfig string
	// Out receives what the commands print.
	Out io.Writer

	kubectl []string
	sandbox bool
}

// Sandbox starts the project's sandbox, or finds it up.
func Sandbox(ctx context.Context, root string, out io.Writer) (*Cluster, error) {
	c := &Cluster{Root: root, Out: out, sandbox: true}
	if err := c.run(ctx, "hack/sandbox", nil, "go", "run", ".", "up"); err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	env, err := c.sandboxEnv(ctx)
	if err != nil {
		return nil, err
	}
	c.Kubeconfig, c.kubectl = env["KUBECONFIG"], []string{env["KUBECTL"]}
	return c, nil
}

// LoadServer builds the sandbox's image of a database server, where it is not there yet,
// and loads it.
func (c *Cluster) LoadServer(ctx context.Context, name string) error {
	if err := c.run(ctx, "hack/sandbox", nil, "go", "run", ".", "server-image", name); err != nil {
		return fmt.Errorf("image of %s: %w", name, err)
	}
	return nil
}

// Current takes the cluster of kubeconfig, or of kubectl's current context where
// kubeconfig is empty. The operator's image must be there for it to pull: it is
// named by image.
func Current(root, kubeconfig string, out io.Writer) *Cluster {
	return &Cluster{Root: root, Kubeconfig: kubeconfig, Out: out, kubectl: []string{"kubectl"}}
}

// sandboxEnv reads the sandbox's own words about where it is.
func (c *Cluster) sandboxEnv(ctx context.Context) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", ".", "env")
	cmd.Dir = filepath.Join(c.Root, "hack/sandbox")
	cmd.Stderr = c.Out
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("sandbox env: %w", err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[key] = value
		}
	}
	for _, key := range []string{"KUBECONFIG", "KUBECTL"} {
		if env[key] == "" {
			return nil, fmt.Errorf("sandbox env: no %s in %q", key, slices.Sorted(maps.Keys(env)))
		}
	}
	return env, nil
}

// Kubectl runs kubectl against the cluster and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectlWith(ctx, nil, args...)
}

// Apply applies manifests, given as text.
func (c *Cluster) Apply(ctx context.Context, manifests string, args ...string) error {
	_, err := c.KubectlIn(ctx, manifests, append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	return err
}

// KubectlIn is Kubectl with a text on its standard input.
func (c *Cluster) KubectlIn(ctx context.Context, in string, args ...string) (string, error) {
	return c.kubectlWith(ctx, strings.NewReader(in), args...)
}

func (c *Cluster) kubectlWith(ctx context.Context, in io.Reader, args ...string) (string, error) {
	argv := c.kubectl
	if c.Kubeconfig != "" {
		argv = append(slices.Clone(argv), "--kubeconfig", c.Kubeconfig)
	}
	argv = append(slices.Clone(argv), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = c.Root, in
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Install builds the operator and its image, loads the image where the project owns
// the cluster, applies config/default and waits for the manager.
func (c *Cluster) Install(ctx context.Context) error {
	manifests, err := c.Kubectl(ctx, "kustomize", "config/default")
	if err != nil {
		return err
	}
	if c.sandbox {
		digest, err := c.loadImage(ctx)
		if err != nil {
			return err
		}
		// The tag never changes, so the digest in the template is what rolls the pods.
		manifests = strings.ReplaceAll(manifests, "dbbench.dev/image-digest: none", "dbbench.dev/image-digest: "+digest)
	}
	if err := c.Apply(ctx, manifests, "--force-conflicts"); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/dbbenchmarks.dbbench.dev"); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "-n", Namespace, "rollout", "status", "deployment/dbbench-manager", "--timeout=120s")
	return err
}

// loadImage builds the image and imports it into the sandbox. It returns a digest of
// the image's content.
func (c *Cluster) loadImage(ctx context.Context) (string, error) {
	for _, name := range []string{"manager", "runner"} {
		err := c.run(ctx, "", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "bin/"+name, "./cmd/"+name)
		if err != nil {
			return "", err
		}
	}
	tar := filepath.Join(c.Root, "bin", "operator.tar")
	err := c.run(ctx, "hack/image", nil, "go", "run", ".", "--tag", Image, "--output", tar, "--user", "65532:65532",
		"--entrypoint", "/manager",
		"--file", filepath.Join(c.Root, "bin/manager")+"=/manager",
		"--file", filepath.Join(c.Root, "bin/runner")+"=/runner")
	if err != nil {
		return "", fmt.Errorf("build the image: %w", err)
	}
	if err := c.run(ctx, "hack/sandbox", nil, "go", "run", ".", "load-image", tar); err != nil {
		return "", fmt.Errorf("load the image: %w", err)
	}
	return fileDigest(tar)
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func (c *Cluster) run(ctx context.Context, dir string, env []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(c.Root, dir)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = c.Out, c.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv[:min(3, len(argv))], " "), err)
	}
	return nil
}

// Root finds the top folder of the project above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module dbbench.dev/operator\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside the project: no go.mod of dbbench.dev/operator above the working directory")
		}
	}
}
