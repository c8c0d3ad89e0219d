package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// down stops everything and removes what up made. It goes on after a failure, so
// that as little as possible is left.
func (s *sandbox) down(ctx context.Context, purge bool) error {
	if purge {
		if err := os.RemoveAll(s.cache); err != nil {
			return err
		}
	}
	before, err := s.recalledMachine()
	if err != nil {
		return err
	}
	if before == nil {
		s.say("the sandbox is down")
		return nil
	}
	shared := s.sharedFiles(before.Folders)
	var failures error
	try := func(err error) { failures = errors.Join(failures, err) }
	for _, name := range slices.Backward(daemons) {
		if name != "containerd" {
			try(s.stopDaemon(name, patience))
		}
	}
	try(s.killPods())
	try(s.stopDaemon("containerd", patience))
	try(s.unmountAll())
	try(s.removeNetwork(ctx, before.KubeChains))
	try(restoreSysctls(before.Sysctls))
	try(removeShared(shared, before.Folders))
	if failures != nil {
		return failures // the state stays, so that a second down can go on
	}
	if err := os.RemoveAll(s.state); err != nil {
		return err
	}
	s.say("the sandbox is down and removed")
	return nil
}

// patience is short, as nothing that a daemon could still write is kept.
const patience = time.Second

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
		if err := syscall.Unmount(point, syscall.MNT_DETACH|umountNoFollow); err != nil {
			failures = errors.Join(failures, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return failures
}

// umountNoFollow is UMOUNT_NOFOLLOW of umount2(2), which package syscall lacks.
const umountNoFollow = 8

// mountsBelow lists the mount points below dir, the latest first.
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
