package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// binDir is where the binary for the present sources lies or will lie: a change of
// the sources or of the toolchain makes another one.
func (s *sandbox) binDir() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), ldflags)
	for _, name := range []string{"go.mod", "go.sum", "kube/main.go"} {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("run the sandbox in its own folder: %w", err)
		}
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(s.cache, "kube-"+hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// build makes the Kubernetes binary, unless it is there.
func (s *sandbox) build(ctx context.Context) error {
	bin, err := s.binDir()
	if err != nil {
		return err
	}
	kube := filepath.Join(bin, "kube")
	if _, err := os.Stat(kube); err == nil {
		return nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	s.say("building Kubernetes %s; about 12 minutes on 2 cores where nothing is cached", kubernetesVersion)
	if err := s.compile(ctx, kube+".new"); err != nil {
		return err
	}
	for _, name := range components {
		link := filepath.Join(bin, name)
		if err := os.Symlink("kube", link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return os.Rename(kube+".new", kube)
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

// follow counts the packages that go build -v names, and says so now and then. It
// returns the last line.
func (s *sandbox) follow(r io.Reader) string {
	start, said, count, last := time.Now(), time.Now(), 0, ""
	for lines := bufio.NewScanner(r); lines.Scan(); count++ {
		last = lines.Text()
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			s.say("  %4.0fs  %d packages, now %s", time.Since(start).Seconds(), count, last)
		}
	}
	return last
}
