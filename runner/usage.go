package runner

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// usage is a reading of what the process has used so far.
type usage struct {
	user, system time.Duration
	maxRSSBytes  int64
	cgroup       cgroup
	scheduling   scheduling
}

func readUsage() usage {
	var r syscall.Rusage
	u := usage{cgroup: readCgroup(os.DirFS("/sys/fs/cgroup")), scheduling: readScheduling()}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil {
		u.user, u.system = time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
		u.maxRSSBytes = int64(r.Maxrss) * rssUnit //nolint:unconvert // an int32 on some machines
	}
	return u
}

// rssUnit is the unit of ru_maxrss: kilobytes but for macOS.
var rssUnit = map[bool]int64{true: 1, false: 1024}[runtime.GOOS == "darwin"]

// since is the usage from an earlier reading.
func (u usage) since(before usage) contract.RunnerUsage {
	out := contract.RunnerUsage{
		GOMAXPROCS: int32(runtime.GOMAXPROCS(0)), CPUModel: cpuModel(),
		CPUUserNanos: int64(u.user - before.user), CPUSystemNanos: int64(u.system - before.system),
		ThrottledNanos: -1, MaxRSSBytes: u.maxRSSBytes,
		Cores: int32(runtime.NumCPU()), CPULimitMilli: u.cgroup.cpuMilli, MemoryLimitBytes: u.cgroup.memory,
		GCCycles: u.scheduling.gcCycles - before.scheduling.gcCycles, GCPauseNanos: int64(u.scheduling.gcPause - before.scheduling.gcPause),
		SchedulingP99Nanos: int64(u.scheduling.delaySince(before.scheduling)),
	}
	if u.cgroup.throttled >= 0 && before.cgroup.throttled >= 0 {
		out.ThrottledNanos = u.cgroup.throttled - before.cgroup.throttled
	}
	return out
}

// cpuModel is what Linux calls the processor: the model, or on ARM its implementer and
// part, which name no model.
func cpuModel() string {
	if model := cpuinfo("model name"); model != "" {
		return model
	}
	return strings.TrimSpace(cpuinfo("CPU implementer") + " " + cpuinfo("CPU part"))
}

func cpuinfo(name string) string {
	_, value, _ := strings.Cut(field("/proc/cpuinfo", name), ":")
	return strings.TrimSpace(value)
}

// field is what follows the name at the start of a line of a file, "" where there is
// none.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
