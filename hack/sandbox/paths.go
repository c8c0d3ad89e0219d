package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The addresses of the sandbox. Everything listens on loopback or on the bridge, at
// ports other than the usual ones, so that a machine's own services are left alone.
const (
	bridge      = "dbbench0"
	nodeIP      = "10.88.0.1"
	podCIDR     = "10.88.0.0/16"
	serviceCIDR = "10.96.0.0/16"
	apiIP       = "10.96.0.1" // the first of serviceCIDR: the Service kubernetes
	nodeName    = "sandbox"

	apiPort     = 16443
	etcdPort    = 12379
	etcdPeer    = 12380
	kubeletPort = 20250
	proxyPort   = 20249
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
	if !filepath.IsAbs(state) || strings.Count(filepath.Clean(state), "/") < 2 {
		return paths{}, fmt.Errorf("DBBENCH_SANDBOX_DIR=%s: it must be an absolute path of at least two folders, as it is removed by down", state)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return paths{}, err
	}
	return paths{state: filepath.Clean(state), cache: filepath.Join(cache, "dbbench-sandbox")}, nil
}

func (p paths) in(elem ...string) string { return filepath.Join(append([]string{p.state}, elem...)...) }
func (p paths) kubeconfig() string       { return p.in("kubeconfig") }
func (p paths) socket() string           { return p.in("run", "containerd.sock") }
func (p paths) pki(name string) string   { return p.in("pki", name) }
