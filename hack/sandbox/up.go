package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed files
var files embed.FS

// daemons in the order in which they start. They stop in the reverse one.
var daemons = []string{"etcd", "kube-apiserver", "containerd", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns"}

// clientQPS is how many requests a second a component may make: a test does much at
// once, and the usual 20 would make it wait.
const clientQPS = "200"

// up starts what is not running, so that a second call heals the first.
func (s *sandbox) up(ctx context.Context) error {
	start := time.Now()
	s.forgetDead()
	for _, step := range []func(context.Context) error{
		s.needPackages, s.build, s.prepareState, s.network,
		s.startAPI, s.startRuntime, s.loadPause, s.loadServerImage, // images load while the API starts
		s.waitAPI, s.startControllers, s.startNode, s.waitReady,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.say("the sandbox is up after %.0f s; kubectl --kubeconfig %s", time.Since(start).Seconds(), s.kubeconfig())
	return nil
}

// prepareState writes what the components read.
func (s *sandbox) prepareState(context.Context) error {
	if err := s.rememberMachine(); err != nil {
		return err
	}
	for _, dir := range []string{"pid", "run", "cni", "podlogs", "volumeplugins"} {
		if err := os.MkdirAll(s.in(dir), 0o755); err != nil {
			return err
		}
	}
	if err := s.makePKI(); err != nil {
		return err
	}
	for name, to := range map[string]string{
		"containerd.toml": "containerd.toml", "cni.conflist": "cni/10-sandbox.conflist",
		"kubelet.yaml": "kubelet.yaml", "kube-proxy.yaml": "kube-proxy.yaml", "Corefile": "Corefile",
	} {
		text, err := s.render(name)
		if err != nil {
			return err
		}
		if err := writeChanged(s.in(to), text); err != nil {
			return err
		}
	}
	return nil
}

// writeChanged leaves a file with the same content alone: kube-proxy ends when its own
// is written.
func writeChanged(file string, text []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return os.WriteFile(file, text, 0o644)
}

// render fills in one of the embedded configuration files.
func (s *sandbox) render(name string) ([]byte, error) {
	t, err := template.ParseFS(files, "files/"+name)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = t.Option("missingkey=error").Execute(&text, map[string]any{
		"State": s.state, "CNIBin": cniDir, "PauseImage": pauseImage,
		"NodeIP": nodeIP, "NodeName": nodeName, "PodCIDR": podCIDR, "PodStart": podStart, "Network": cniNetwork,
		"KubeletPort": kubeletPort, "ProxyPort": proxyPort, "HealthPort": healthPort,
	})
	return text.Bytes(), err
}

func (s *sandbox) startAPI(context.Context) error {
	etcd := "http://127.0.0.1:" + strconv.Itoa(etcdPort)
	peer := "http://127.0.0.1:" + strconv.Itoa(etcdPeer)
	if err := s.startDaemon("etcd", s.bin("etcd"), "--data-dir", s.in("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer); err != nil {
		return err
	}
	return s.startDaemon("kube-apiserver", s.bin("kube-apiserver"),
		"--etcd-servers", etcd,
		"--bind-address", nodeIP, "--advertise-address", nodeIP, "--secure-port", strconv.Itoa(apiPort),
		"--service-cluster-ip-range", serviceCIDR,
		"--client-ca-file", s.pki("ca.crt"), "--tls-cert-file", s.pki("apiserver.crt"), "--tls-private-key-file", s.pki("apiserver.key"),
		"--service-account-key-file", s.pki("sa.pub"), "--service-account-signing-key-file", s.pki("sa.key"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--kubelet-client-certificate", s.pki("admin.crt"), "--kubelet-client-key", s.pki("admin.key"),
		"--kubelet-preferred-address-types", "InternalIP",
		"--allow-privileged", "--profiling=false")
}

func (s *sandbox) waitAPI(ctx context.Context) error {
	return s.until(ctx, time.Minute, "kube-apiserver is not ready", func() error {
		_, err := s.get(ctx, "/readyz")
		return err
	})
}

func (s *sandbox) startControllers(context.Context) error {
	if err := s.startDaemon("kube-controller-manager", s.bin("kube-controller-manager"),
		"--kubeconfig", s.kubeconfig(), "--secure-port", "0", "--leader-elect=false", "--use-service-account-credentials",
		"--kube-api-qps", clientQPS, "--kube-api-burst", clientQPS,
		"--service-account-private-key-file", s.pki("sa.key"), "--root-ca-file", s.pki("ca.crt")); err != nil {
		return err
	}
	return s.startDaemon("kube-scheduler", s.bin("kube-scheduler"),
		"--kubeconfig", s.kubeconfig(), "--secure-port", "0", "--leader-elect=false",
		"--kube-api-qps", clientQPS, "--kube-api-burst", clientQPS)
}

func (s *sandbox) startRuntime(ctx context.Context) error {
	if err := s.startDaemon("containerd", "containerd", "--config", s.in("containerd.toml")); err != nil {
		return err
	}
	return s.until(ctx, 30*time.Second, "containerd does not answer", func() error {
		return s.ctr(ctx, "version")
	})
}

func (s *sandbox) startNode(context.Context) error {
	if err := s.startDaemon("kubelet", s.bin("kubelet"), "--kubeconfig", s.in("node.kubeconfig"), "--config", s.in("kubelet.yaml"),
		"--hostname-override", nodeName, "--node-ip", nodeIP,
		"--root-dir", s.in("kubelet"), "--cert-dir", s.in("pki", "kubelet")); err != nil {
		return err
	}
	if err := s.startDaemon("kube-proxy", s.bin("kube-proxy"), "--config", s.in("kube-proxy.yaml")); err != nil {
		return err
	}
	return s.startDaemon("coredns", s.bin("coredns"), "-conf", s.in("Corefile"))
}

func (s *sandbox) waitReady(ctx context.Context) error {
	return s.until(ctx, 2*time.Minute, "the node is not ready", func() error {
		if err := s.nodeReady(ctx); err != nil {
			return err
		}
		// Pods cannot be made before the namespace has its account.
		_, err := s.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		return err
	})
}

func (s *sandbox) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.bin("kubectl"), append([]string{"--kubeconfig", s.kubeconfig(), "--request-timeout", "10s"}, args...)...)
	cmd.Env = daemonEnv // the user's proxy settings and kubectl preferences are not meant
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(text), err
}

func (s *sandbox) ctr(ctx context.Context, args ...string) error {
	return s.command(ctx, "ctr", append([]string{"--address", s.socket(), "--namespace", "k8s.io"}, args...)...)
}

// until calls f until it succeeds, at most for a time. It gives up at once where a
// component has ended.
func (s *sandbox) until(ctx context.Context, limit time.Duration, failure string, f func() error) error {
	var last error
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if last = f(); last == nil {
			return nil
		}
		if dead := s.deadDaemons(); len(dead) > 0 {
			return fmt.Errorf("%s: %s ended: %s; see %s", failure, dead[0], s.lastLine(dead[0]), s.logFile(dead[0]))
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return errors.Join(err, last)
		}
	}
	return fmt.Errorf("%s after %s: %w; see %s", failure, limit, last, s.in("log"))
}
