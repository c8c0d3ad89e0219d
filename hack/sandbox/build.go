package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

const kubernetesVersion = "1.37.2"

// components are the names under which the one binary is called.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns", "kubectl"}

var ldflags = "-s -w" +
	" -X k8s.io/component-base/version.gitVersion=v" + kubernetesVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37" +
	" -X k8s.io/client-go/pkg/version.gitVersion=v" + kubernetesVersion

// buildKey stands for all that the binary in the folder is made of: the module, the
// sources, the toolchain and its options.
func buildKey(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH, ldflags)
	for _, name := range []string{"go.mod", "go.sum", "kube/main.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("run the sandbox in its own folder (hack/sandbox): %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// build makes the Kubernetes binary, unless the one in the cache is of these sources.
func (s *sandbox) build(ctx context.Context) error {
	key, err := buildKey(".")
	if err != nil {
		return err
	}
	built, err := os.ReadFile(s.bin("kube.key"))
	if err == nil && string(built) == key {
		return nil
	}
	if err := os.MkdirAll(s.bin(""), 0o755); err != nil {
		return err
	}
	s.say("building Kubernetes %s; about 12 minutes on 2 cores where nothing is cached", kubernetesVersion)
	if err := s.compile(ctx, s.bin("kube.new")); err != nil {
		return err
	}
	for _, name := range components {
		if err := os.Symlink("kube", s.bin(name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.Rename(s.bin("kube.new"), s.bin("kube")); err != nil {
		return err
	}
	return os.WriteFile(s.bin("kube.key"), []byte(key), 0o644)
}

func (s *sandbox) compile(ctx context.Context, output string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-ldflags", ldflags, "-o", output, "./kube")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	tail := s.follow(pipe)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build Kubernetes: %w; last output: %s", err, tail)
	}
	return nil
}

// follow counts the packages that go build -v names, and says so now and then, also
// while nothing is named: linking takes long. It returns the last line.
func (s *sandbox) follow(r io.Reader) string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	start, count, last := time.Now(), 0, ""
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return last
			}
			count, last = count+1, line
		case <-tick.C:
			s.say("  %4.0f s, %d packages compiled", time.Since(start).Seconds(), count)
		}
	}
}
