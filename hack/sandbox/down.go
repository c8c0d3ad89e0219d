package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine is what of the machine's own state up changes, as it was before.
type machine struct {
	IPForward string `json:"ipForward"`
	// KubeChains says that chains of another Kubernetes were there.
	KubeChains bool `json:"kubeChains"`
	// Paths of sharedPaths that were there.
	Paths []string `json:"paths"`
}

// sharedPaths are those that the components make outside the sandbox's folders,
// whatever their flags say.
func sharedPaths() []string {
	shared := []string{"/run/containerd", "/var/log/containers", "/var/lib/cni", "/var/lib/kubelet", "/run/xtables.lock"}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, group := range append(groups, "/sys/fs/cgroup") {
		shared = append(shared, filepath.Join(group, "kubepods"), filepath.Join(group, "k8s.io"))
	}
	return shared
}

// rememberMachine records the machine's state once, before the first change.
func (s *sandbox) rememberMachine() error {
	file := s.in("machine.json")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	forward, err := os.ReadFile(ipForward)
	if err != nil {
		return err
	}
	m := machine{IPForward: strings.TrimSpace(string(forward))}
	rules, _ := exec.Command("iptables-save").Output()
	m.KubeChains = strings.Contains(string(rules), ":KUBE-")
	for _, path := range sharedPaths() {
		if _, err := os.Lstat(path); err == nil {
			m.Paths = append(m.Paths, path)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// down stops everything and removes what up made. It goes on after a failure, so
// that as little as possible is left.
func (s *sandbox) down(ctx context.Context, purge bool) error {
	if os.Geteuid() != 0 {
		return errors.New("down needs root")
	}
	if purge {
		if err := os.RemoveAll(s.cache); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(s.in("machine.json"))
	if errors.Is(err, os.ErrNotExist) {
		s.say("the sandbox is down")
		return os.RemoveAll(s.state)
	} else if err != nil {
		return err
	}
	var before machine
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("machine.json: %w", err)
	}
	var failures error
	try := func(err error) { failures = errors.Join(failures, err) }
	for _, name := range slices.Backward(daemons) {
		if name != "containerd" {
			try(s.stopDaemon(name, 10*time.Second))
		}
	}
	try(s.killPods())
	try(s.stopDaemon("containerd", 10*time.Second))
	try(s.unmountAll())
	try(s.removeNetwork(ctx, before))
	try(removeShared(before))
	if failures != nil {
		return failures // the state stays, so that a second down can go on
	}
	if err := os.RemoveAll(s.state); err != nil {
		return err
	}
	s.say("the sandbox is down and removed")
	return nil
}

// killPods ends the containers and their shims: the processes in the cgroups of pods
// that were started by the sandbox's containerd.
func (s *sandbox) killPods() error {
	for range 100 {
		pids := s.shims()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			for _, child := range children(pid) {
				_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended by now
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("shims of containerd are still there")
}

// shims are the pids of shims that name the sandbox's socket.
func (s *sandbox) shims() []int {
	var pids []int
	forProcesses(func(pid int) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		argv := strings.Split(string(text), "\x00")
		if strings.Contains(filepath.Base(argv[0]), "containerd-shim") && slices.Contains(argv, s.socket()) {
			pids = append(pids, pid)
		}
	})
	return pids
}

func children(parent int) []int {
	var pids []int
	forProcesses(func(pid int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == fmt.Sprint(parent) {
			pids = append(pids, pid)
		}
	})
	return pids
}

func forProcesses(f func(pid int)) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
			f(pid)
		}
	}
}

// unmountAll unmounts all below the state folder, the deepest first: volumes, root
// filesystems, network namespaces.
func (s *sandbox) unmountAll() error {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var failures error
	for _, point := range mountsBelow(string(text), s.state) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			failures = errors.Join(failures, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return failures
}

func mountsBelow(mounts, dir string) []string {
	var points []string
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			points = append(points, fields[1])
		}
	}
	slices.Reverse(points)
	return points
}

// removeShared removes those of sharedPaths that were not there before.
func removeShared(before machine) error {
	var failures error
	for _, path := range sharedPaths() {
		if slices.Contains(before.Paths, path) {
			continue
		}
		if strings.HasPrefix(path, "/sys/fs/cgroup/") {
			removeCgroups(path)
			continue
		}
		failures = errors.Join(failures, os.RemoveAll(path))
	}
	return failures
}

// removeCgroups removes a tree of control groups, which knows rmdir alone. One that
// is in use stays.
func removeCgroups(root string) {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = syscall.Rmdir(dir)
	}
}
