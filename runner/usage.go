package runner

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dbbench.dev/operator/runner/contract"
)

// usage is a reading of what the process has used so far.
type usage struct {
	user, system time.Duration
	maxRSSBytes  int64
	throttled    int64 // nanoseconds, -1 where the cgroup does not say
}

func readUsage() usage {
	var r syscall.Rusage
	u := usage{throttled: readThrottled()}
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
	}
	if u.throttled >= 0 && before.throttled >= 0 {
		out.ThrottledNanos = u.throttled - before.throttled
	}
	return out
}

// readThrottled reads the container's own cgroup, which is the root of its view
// (cgroup v2).
func readThrottled() int64 {
	usec, err := strconv.ParseInt(field("/sys/fs/cgroup/cpu.stat", "throttled_usec"), 10, 64)
	if err != nil {
		return -1
	}
	return usec * int64(time.Microsecond)
}

func cpuModel() string {
	_, model, _ := strings.Cut(field("/proc/cpuinfo", "model name"), ":")
	return strings.TrimSpace(model)
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
