package runner

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// cgroup is what a container is allowed, and how often it was held back.
type cgroup struct {
	// cpuMilli is in thousandths of a processor and memory in bytes; 0 is no limit.
	cpuMilli, memory int64
	// throttled is the time in nanoseconds for which the limit held the container back, -1
	// where that is not known.
	throttled int64
}

// readCgroup reads a container's own cgroup, which is the root of its view: of version 2
// where there is one, else of version 1, whose controllers have a directory each.
func readCgroup(root fs.FS) cgroup {
	if _, err := fs.Stat(root, "cgroup.controllers"); err == nil {
		quota, period, _ := strings.Cut(text(root, "cpu.max"), " ")
		return cgroup{
			cpuMilli: cpuMilli(number(quota), number(period)), memory: memoryLimit(number(text(root, "memory.max"))),
			throttled: throttled(root, "cpu.stat", "throttled_usec", time.Microsecond),
		}
	}
	return cgroup{
		cpuMilli:  cpuMilli(number(text(root, "cpu/cpu.cfs_quota_us")), number(text(root, "cpu/cpu.cfs_period_us"))),
		memory:    memoryLimit(number(text(root, "memory/memory.limit_in_bytes"))),
		throttled: throttled(root, "cpu/cpu.stat", "throttled_time", time.Nanosecond),
	}
}

// text is the content of a file, "" where there is none.
func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// number is -1 where a text is none, such as "max".
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func cpuMilli(quota, period int64) int64 {
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota * 1000 / period
}

// memoryLimit is 0 for a limit that is none: version 1 says so with the largest multiple
// of a page.
func memoryLimit(bytes int64) int64 {
	const page = 64 << 10 // the largest that Linux knows by default
	if bytes < 0 || bytes > math.MaxInt64-page {
		return 0
	}
	return bytes
}

func throttled(root fs.FS, file, name string, unit time.Duration) int64 {
	for lines := bufio.NewScanner(strings.NewReader(text(root, file))); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return number(rest) * int64(unit)
		}
	}
	return -1
}
