package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cniNetwork names the pods' network, also in the files that the CNI plugins cache.
const cniNetwork = "dbbench-sandbox"

// machine is the machine's own state before up changed it.
type machine struct {
	// Sysctls by name, such as net/ipv4/ip_forward.
	Sysctls map[string]string `json:"sysctls"`
	// KubeChains says that iptables chains of another Kubernetes were there.
	KubeChains bool `json:"kubeChains"`
	// Folders are those of sharedFolders that were there.
	Folders []string `json:"folders"`
}

// changedSysctls are those that up, the kubelet and the kernel in their wake change.
var changedSysctls = []string{
	"net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// kubeletSocket is where every kubelet listens for device plugins. Its folder is
// cleared by each kubelet that starts, so there can be one on a machine.
const kubeletSocket = "/var/lib/kubelet/device-plugins/kubelet.sock"

func sysctlFile(name string) string { return filepath.Join("/proc/sys", name) }

// sharedFolders are those outside the sandbox's own that its components use, whatever
// their flags say; a folder comes before the one that holds it.
var sharedFolders = []string{
	"/run/containerd/s", "/run/containerd",
	"/var/lib/cni/results", "/var/lib/cni",
	"/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
	"/var/log/containers",
}

// machineFile marks a folder as the sandbox's own.
func (s *sandbox) machineFile() string { return s.in("machine.json") }

// rememberMachine takes the state folder and records the machine's state in it, once
// and before the first change.
func (s *sandbox) rememberMachine() error {
	if _, err := os.Stat(s.machineFile()); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.state, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(s.state); err != nil {
		return err
	} else if len(entries) > 0 {
		return fmt.Errorf("%s is not empty and not the sandbox's: name another folder in DBBENCH_SANDBOX_DIR", s.state)
	}
	text, err := json.Marshal(observeMachine())
	if err != nil {
		return err
	}
	// A torn record would be worse than none.
	part := s.machineFile() + ".new"
	return errors.Join(os.WriteFile(part, text, 0o644), os.Rename(part, s.machineFile()))
}

func observeMachine() machine {
	m := machine{Sysctls: map[string]string{}}
	for _, name := range changedSysctls {
		if text, err := os.ReadFile(sysctlFile(name)); err == nil {
			m.Sysctls[name] = strings.TrimSpace(string(text))
		}
	}
	for _, family := range []string{"iptables-save", "ip6tables-save"} {
		rules, _ := exec.Command(family).Output() // a machine without it has no rules of it
		m.KubeChains = m.KubeChains || strings.Contains(string(rules), ":KUBE-") || strings.Contains(string(rules), ":CNI-")
	}
	for _, folder := range append(slices.Clone(sharedFolders), cgroups()...) {
		if _, err := os.Lstat(folder); err == nil {
			m.Folders = append(m.Folders, folder)
		}
	}
	return m
}

// recalledMachine reads the record. It is nil where there is none: up never ran.
func (s *sandbox) recalledMachine() (*machine, error) {
	text, err := os.ReadFile(s.machineFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var m machine
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", s.machineFile(), err)
	}
	return &m, nil
}

// restoreSysctls sets back what has another value than before.
func restoreSysctls(before map[string]string) error {
	var failures error
	for name, value := range before {
		now, err := os.ReadFile(sysctlFile(name))
		if err == nil && strings.TrimSpace(string(now)) != value {
			err = os.WriteFile(sysctlFile(name), []byte(value), 0o644)
		}
		failures = errors.Join(failures, err)
	}
	return failures
}

// sharedFiles are the sandbox's own files in shared folders. They are found by what
// is running, so this comes before the end of it.
func (s *sandbox) sharedFiles(before []string) []string {
	var ours []string
	const results = "/var/lib/cni/results/"
	cached, _ := filepath.Glob(results + cniNetwork + "-*-eth0")
	for _, file := range cached {
		pod := strings.TrimSuffix(strings.TrimPrefix(file, results+cniNetwork+"-"), "-eth0")
		ours = append(ours, file, results+"cni-loopback-"+pod+"-lo")
	}
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, s.state+"/") {
			ours = append(ours, link)
		}
	}
	addresses, _ := filepath.Glob(s.in("run/containerd/io.containerd.runtime.v2.task/*/*/address"))
	for _, file := range addresses {
		address, err := os.ReadFile(file)
		socket, ok := strings.CutPrefix(string(address), "unix://")
		if err == nil && ok && filepath.Dir(socket) == "/run/containerd/s" {
			ours = append(ours, socket)
		}
	}
	if !slices.Contains(before, filepath.Dir(kubeletSocket)) {
		ours = append(ours, kubeletSocket)
	}
	return ours
}

// removeShared removes the sandbox's files from the shared folders, and then those
// folders that were not there before. One that holds anything else stays.
func removeShared(files, before []string) error {
	var failures error
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			failures = errors.Join(failures, err)
		}
	}
	for _, folder := range append(slices.Clone(sharedFolders), cgroups()...) {
		if !slices.Contains(before, folder) {
			_ = syscall.Rmdir(folder)
		}
	}
	return failures
}

// cgroups are the control groups of pods, the deepest first, in every hierarchy.
func cgroups() []string {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	var groups []string
	for _, root := range append(roots, "/sys/fs/cgroup/kubepods") {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil // one that goes away meanwhile is what we want
		})
	}
	slices.SortFunc(groups, func(a, b string) int { return strings.Compare(b, a) })
	return groups
}
