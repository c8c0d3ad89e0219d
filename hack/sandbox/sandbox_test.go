package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// testSandbox has its folders in a temporary one.
func testSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir := t.TempDir()
	return &sandbox{paths: paths{state: filepath.Join(dir, "state"), cache: filepath.Join(dir, "cache")}, out: io.Discard}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (go test -update writes it anew):\n%s\nwant:\n%s", name, got, want)
	}
}

func TestConfigurationFiles(t *testing.T) {
	s := &sandbox{paths: paths{state: "/var/lib/sandbox", cache: "/cache"}, out: io.Discard}
	for _, name := range []string{"containerd.toml", "cni.conflist", "kubelet.yaml", "kube-proxy.yaml", "Corefile"} {
		text, err := s.render(name)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, text)
	}
	golden(t, "kubeconfig", s.kubeconfigOf("admin"))
}

func TestEnvNamesWhatOthersUse(t *testing.T) {
	t.Setenv("DBBENCH_SANDBOX_DIR", "/var/lib/sandbox")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"env"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	golden(t, "env", out.Bytes())
}

func TestStateDirMustBeOfItsOwn(t *testing.T) {
	for dir, ok := range map[string]bool{
		"/var/lib/dbbench-sandbox": true, "/tmp/x": true,
		"": false, "relative/dir": false, "/": false, "/home": false, "/home/": false, "/a/../b": false, "/tmp/with blank": false, `/tmp/quo"te`: false,
	} {
		if err := checkStateDir(dir); (err == nil) != ok {
			t.Errorf("checkStateDir(%q) = %v", dir, err)
		}
	}
}

func TestParseStat(t *testing.T) {
	fields := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for name, c := range map[string]struct {
		text string
		want uint64
		ok   bool
	}{
		"plain":                 {"12 (kubelet)" + fields, 4711, true},
		"name with parentheses": {"12 (a) b (c)" + fields, 4711, true},
		"zombie":                {"12 (kubelet)" + strings.Replace(fields, "S", "Z", 1), 0, false},
		"short":                 {"12 (kubelet) S 1", 0, false},
		"empty":                 {"", 0, false},
	} {
		got, err := parseStat(c.text)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestDaemonLivesAndEnds(t *testing.T) {
	s := testSandbox(t)
	if err := os.MkdirAll(s.in("pid"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.startDaemon("etcd", "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	first, err := s.readDaemon("etcd")
	if err != nil || !first.alive() {
		t.Fatalf("%+v is not alive: %v", first, err)
	}
	if err := s.startDaemon("etcd", "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	if second, _ := s.readDaemon("etcd"); second != first {
		t.Errorf("a running daemon was started again: %+v, %+v", first, second)
	}
	if err := s.stopDaemon("etcd", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if first.alive() || s.daemonAlive("etcd") {
		t.Error("it is alive after its end")
	}
	if err := s.stopDaemon("etcd", time.Second); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestReusedPidIsLeftAlone(t *testing.T) {
	s := testSandbox(t)
	if err := os.MkdirAll(s.in("pid"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill() })
	// The record is of an earlier process with the same pid.
	if err := os.WriteFile(s.pidFile("kubelet"), []byte(strconv.Itoa(other.Process.Pid)+" 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if dead := s.deadDaemons(); !slices.Equal(dead, []string{"kubelet"}) {
		t.Errorf("dead: %v", dead)
	}
	if err := s.stopDaemon("kubelet", time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := startTime(other.Process.Pid); err != nil {
		t.Errorf("somebody else's process was ended: %v", err)
	}
}

func TestBuildKeyFollowsTheSources(t *testing.T) {
	dir := t.TempDir()
	names := []string{"go.mod", "go.sum", "kube/main.go"}
	if err := os.Mkdir(filepath.Join(dir, "kube"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	key := func() string {
		k, err := buildKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seen[key()] = true
	if !seen[key()] {
		t.Error("the same sources gave two keys")
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		if seen[key()] {
			t.Errorf("a change of %s did not change the key", name)
		}
		seen[key()] = true
	}
	if _, err := buildKey(t.TempDir()); err == nil || !strings.Contains(err.Error(), "hack/sandbox") {
		t.Errorf("another folder: %v", err)
	}
}

func TestMissingPackages(t *testing.T) {
	all := func(string) (string, error) { return "/usr/bin/x", nil }
	if missing := missingPackages(all); missing != nil {
		t.Errorf("missing: %v", missing)
	}
	some := func(name string) (string, error) {
		if name == "runc" || strings.HasPrefix(name, cniDir) {
			return "", exec.ErrNotFound
		}
		return "/usr/bin/" + name, nil
	}
	if missing := missingPackages(some); !slices.Equal(missing, []string{"runc", "containernetworking-plugins"}) {
		t.Errorf("missing: %v", missing)
	}
}

func TestMirrorOf(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"deb822": {"Types: deb\n# http://old.example/debian\nURIs: http://mirror.example/debian\nSuites: bookworm\n\n" +
			"Types: deb\nURIs: http://mirror.example/debian-security\n", "http://mirror.example/debian"},
		"one line":           {"# a comment\ndeb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		"one line, options":  {"deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian/ bookworm main\n", "https://mirror.example/debian/"},
		"security first":     {"deb http://m.example/debian-security bookworm-security main\ndeb http://m.example/debian bookworm main\n", "http://m.example/debian"},
		"commented out":      {"#deb http://mirror.example/debian bookworm main\n# deb http://mirror.example/debian bookworm main\n", ""},
		"sources only":       {"deb-src http://mirror.example/debian bookworm main\n", ""},
		"other distribution": {"deb http://archive.example/ubuntu noble main\n", ""},
		"empty":              {"", ""},
	} {
		if got := mirrorOf(bufio.NewScanner(strings.NewReader(c.text))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDebianMirrorReadsTheFolderToo(t *testing.T) {
	dir := t.TempDir()
	if _, err := debianMirror(dir); err == nil {
		t.Error("no sources, no error")
	}
	if err := os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.list": "deb https://other.example/apt x main\n", "debian.sources": "URIs: http://mirror.example/debian\n"} {
		if err := os.WriteFile(filepath.Join(dir, "sources.list.d", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := debianMirror(dir); got != "http://mirror.example/debian" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestMountsBelow(t *testing.T) {
	mounts := `/dev/vda / ext4 rw 0 0
tmpfs /var/lib/sandbox/kubelet/a tmpfs rw 0 0
tmpfs /var/lib/sandbox-2/x tmpfs rw 0 0
overlay /var/lib/sandbox/kubelet/a/b overlay rw 0 0
tmpfs /mnt/var/lib/sandbox/x tmpfs rw 0 0
`
	want := []string{"/var/lib/sandbox/kubelet/a/b", "/var/lib/sandbox/kubelet/a"}
	if got := mountsBelow(mounts, "/var/lib/sandbox"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRemovalScript(t *testing.T) {
	dump, err := os.ReadFile("testdata/iptables-save")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "iptables-removal", []byte(removalScript(string(dump), false)))
	golden(t, "iptables-removal-beside-another", []byte(removalScript(string(dump), true)))
	if script := removalScript("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j LOG\nCOMMIT\n", false); script != "" {
		t.Errorf("rules of others: %q", script)
	}
}

func TestForeignAddress(t *testing.T) {
	address := func(text string) []net.Addr {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return []net.Addr{&net.IPNet{IP: ip, Mask: network.Mask}}
	}
	for text, ok := range map[string]bool{
		"192.168.1.2/24": true, "fe80::1/64": true, nodeIP + "/32": true,
		nodeIP + "/16": false, "10.213.9.9/24": false, apiIP + "/32": false,
	} {
		err := foreignAddress(map[string][]net.Addr{"lo": address("127.0.0.1/8"), "other0": address(text)})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "other0") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckReady(t *testing.T) {
	since := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	node := func(status, heartbeat string) string {
		return `{"status":{"conditions":[{"type":"DiskPressure","status":"False"},{"type":"Ready","status":"` + status +
			`","message":"network is not there","lastHeartbeatTime":"` + heartbeat + `"}]}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"ready":           {node("True", "2030-01-01T12:00:00Z"), ""},
		"not ready":       {node("False", "2030-01-01T12:00:00Z"), "network is not there"},
		"earlier kubelet": {node("True", "2030-01-01T11:59:59Z"), "earlier kubelet"},
		"new node":        {`{"status":{}}`, "no report yet"},
		"not JSON":        {`<html>`, "invalid character"},
	} {
		err := checkReady([]byte(c.text), since)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFolderOfOthersIsNeitherTakenNorRemoved(t *testing.T) {
	s := testSandbox(t)
	if err := os.MkdirAll(s.state, 0o755); err != nil {
		t.Fatal(err)
	}
	precious := s.in("precious")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.rememberMachine(); err == nil || !strings.Contains(err.Error(), "DBBENCH_SANDBOX_DIR") {
		t.Errorf("a folder with files was taken: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := s.down(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestMachineIsRememberedOnce(t *testing.T) {
	s := testSandbox(t)
	if before, err := s.recalledMachine(); before != nil || err != nil {
		t.Fatalf("%v, %v", before, err)
	}
	if err := s.rememberMachine(); err != nil {
		t.Fatal(err)
	}
	first, err := s.recalledMachine()
	if err != nil || first.Sysctls["net/ipv4/ip_forward"] == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	changed := []byte(`{"sysctls":{"net/ipv4/ip_forward":"as it was"}}`)
	if err := os.WriteFile(s.machineFile(), changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.rememberMachine(); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.recalledMachine(); again.Sysctls["net/ipv4/ip_forward"] != "as it was" {
		t.Error("a second up took the changed state for the machine's own")
	}
}

func TestCertificates(t *testing.T) {
	s := testSandbox(t)
	if err := s.makePKI(); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for file, organization := range map[string]string{"apiserver": "", "admin": "system:masters", "node": "system:nodes"} {
		pair, err := tls.LoadX509KeyPair(s.pki(file+".crt"), s.pki(file+".key"))
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{nodeIP, apiIP, "127.0.0.1", "kubernetes.default.svc"} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
				t.Errorf("%s for %s: %v", file, host, err)
			}
		}
		if got := strings.Join(pair.Leaf.Subject.Organization, ","); got != organization {
			t.Errorf("%s is of %q, want %q", file, got, organization)
		}
		if info, err := os.Stat(s.pki(file + ".key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s.key can be read by others: %v", file, err)
		}
	}
	if err := s.makePKI(); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(s.pki("ca.crt")); !bytes.Equal(again, ca) {
		t.Error("a second call made another authority")
	}
}

func TestUntilTellsWhatEnded(t *testing.T) {
	s := testSandbox(t)
	for _, dir := range []string{"pid", "log"} {
		if err := os.MkdirAll(s.in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{s.pidFile("etcd"): "1 1\n", s.logFile("etcd"): "first\naddress already in use\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := s.until(t.Context(), time.Minute, "the API is not ready", func() error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "etcd ended: address already in use") {
		t.Errorf("%v", err)
	}
}

func TestCommandsExcludeEachOther(t *testing.T) {
	s := testSandbox(t)
	err := s.alone(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return s.alone(ctx, func(context.Context) error { return nil })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second command ran beside the first: %v", err)
	}
	if err := s.alone(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func TestLoadImageNeedsTheSandbox(t *testing.T) {
	s := testSandbox(t)
	if err := s.loadImages(t.Context(), []string{"x.tar"}); err == nil || !strings.Contains(err.Error(), "sandbox up") {
		t.Errorf("%v", err)
	}
	if err := s.serverImages(t.Context(), []string{"oracle"}); err == nil || !strings.Contains(err.Error(), "mariadb-10.11") {
		t.Errorf("%v", err)
	}
}
