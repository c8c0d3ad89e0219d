//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/test/mariadb"
)

// limitCPU holds a process to a share of one processor, in percent.
func limitCPU(t *testing.T, pid, percent int) {
	t.Helper()
	root, limit := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"
	quota := strconv.Itoa(percent * 1000)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, limit, quota = "/sys/fs/cgroup", "cpu.max", quota+" 100000"
	}
	group := filepath.Join(root, "dbbench-test-"+strconv.Itoa(pid))
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() { _ = os.Remove(group) }) // once the process has ended
		err = os.WriteFile(filepath.Join(group, limit), []byte(quota), 0o644)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestARunnerWithTooLittleCPUSaysSo gives the runner a tenth of a processor for a load
// that needs more.
func TestARunnerWithTooLittleCPUSaysSo(t *testing.T) {
	spec := slapSpec(t, mariadb.Start(t))
	spec.Load = contract.Load{Clients: 8, Rate: 4000, Duration: seconds(3)}
	p := start(t, spec)
	limitCPU(t, p.command.Process.Pid, 10)
	o := p.wait()
	if o.recordErr != nil || o.record == nil {
		t.Fatalf("%v\n%s", o.recordErr, o.stderr)
	}
	u, result := o.record.Environment.Runner, o.record.Result
	// The kernel lets the group run for 10 ms of 100.
	if late := time.Duration(u.WakeupP99Nanos); late < 10*time.Millisecond || result.Late == 0 {
		t.Errorf("woken %s late, %d arrivals late", late, result.Late)
	}
	if u.SchedulingP99Nanos == 0 || u.LoopBusyPermille == 0 {
		t.Errorf("usage %+v", u)
	}
	if !slices.ContainsFunc(result.Warnings, func(w string) bool { return strings.Contains(w, "too little CPU") }) {
		t.Errorf("warnings %q", result.Warnings)
	}
}
