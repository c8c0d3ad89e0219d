package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The addresses of the sandbox. Everything listens on loopback or on the bridge, at
// ports other than the usual ones, so that a machine's own services are left alone.
const (
	bridge      = "dbbench0"
	nodeIP      = "10.213.0.1"
	podCIDR     = "10.213.0.0/16"
	podStart    = "10.213.1.1" // pods get addresses from here on
	serviceCIDR = "10.214.0.0/16"
	apiIP       = "10.214.0.1" // the first of serviceCIDR: the Service kubernetes
	nodeName    = "sandbox"

	apiPort     = 16443
	etcdPort    = 12379
	etcdPeer    = 12380
	kubeletPort = 20250
	proxyPort   = 20249
	healthPort  = 20256 // of kube-proxy
)

// paths are the two folders of the sandbox.
type paths struct {
	state string // of the running cluster; removed by down
	cache string // of builds and images; kept
}

func defaultPaths() (paths, error) {
	state := os.Getenv("DBBENCH_SANDBOX_DIR")
	if state == "" {
		state = "/var/lib/dbbench-sandbox"
	}
	if err := checkStateDir(state); err != nil {
		return paths{}, fmt.Errorf("DBBENCH_SANDBOX_DIR=%s: %w", state, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return paths{}, err
	}
	return paths{state: filepath.Clean(state), cache: filepath.Join(cache, "dbbench-sandbox")}, nil
}

// plainPath needs no quoting in a configuration file, nor in the kernel's list of mounts.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)

func checkStateDir(dir string) error {
	switch {
	case !filepath.IsAbs(dir):
		return errors.New("name an absolute path")
	case strings.Count(filepath.Clean(dir), "/") < 2:
		return errors.New("name a folder below another one: down removes it")
	case !plainPath.MatchString(dir):
		return errors.New("use letters, digits and . _ - only")
	}
	return nil
}

func (p paths) in(elem ...string) string { return filepath.Join(append([]string{p.state}, elem...)...) }
func (p paths) kubeconfig() string       { return p.in("kubeconfig") }
func (p paths) bin(name string) string   { return filepath.Join(p.cache, "bin", name) }
func (p paths) socket() string           { return p.in("run", "containerd.sock") }
func (p paths) pki(name string) string   { return p.in("pki", name) }
