package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// programs are what the node needs of the machine, and the Debian package of each.
var programs = []struct{ path, pkg string }{
	{"containerd", "containerd"},
	{"runc", "runc"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"mount", "mount"},
	{"mmdebstrap", "mmdebstrap"},
	{cniDir + "/ptp", "containernetworking-plugins"},
}

// cniDir is where Debian puts the CNI plugins.
const cniDir = "/usr/lib/cni"

func missingPackages(lookPath func(string) (string, error)) []string {
	var missing []string
	for _, p := range programs {
		if _, err := lookPath(p.path); err != nil {
			missing = append(missing, p.pkg)
		}
	}
	return missing
}

// checkMachine says why this is no machine for the sandbox.
func checkMachine() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the sandbox needs Linux, not %s; use a cluster of your own instead (make demo CLUSTER=current)", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the sandbox needs root: it runs a kubelet and containers; run it with sudo, or use a cluster of your own (make demo CLUSTER=current)")
	}
	return nil
}

// needPackages installs what is missing.
func (s *sandbox) needPackages(ctx context.Context) error {
	if !s.daemonAlive("kubelet") && staysOpen(ctx, kubeletSocket) {
		return errors.New("this machine runs a kubelet already, and two disturb each other; use its cluster (make demo CLUSTER=current)")
	}
	missing := missingPackages(exec.LookPath)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install what is missing: %s", strings.Join(missing, " "))
	}
	s.say("installing %s", strings.Join(missing, " "))
	return s.aptInstall(ctx, missing)
}

// policyFile keeps Debian's package scripts from starting services where it exits
// with 101. An own one stands only for the time of the installation.
const policyFile = "/usr/sbin/policy-rc.d"

func (s *sandbox) aptInstall(ctx context.Context, packages []string) error {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err == nil {
		defer os.Remove(policyFile)
		_, err = f.WriteString("#!/bin/sh\nexit 101\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	args := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)
	if s.command(ctx, "apt-get", args...) == nil {
		return nil
	}
	// The machine's lists may be old or absent.
	if err := s.command(ctx, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	return s.command(ctx, "apt-get", args...)
}

// command runs a program; what it prints is shown only if it fails.
func (s *sandbox) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}

// staysOpen says whether something listens, for longer than a process takes to end.
func staysOpen(ctx context.Context, socket string) bool {
	for range 20 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		c.Close()
		if sleep(ctx, 100*time.Millisecond) != nil {
			return false
		}
	}
	return true
}
