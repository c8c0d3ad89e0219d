package runner

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestReadCgroup(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tt := range []struct {
		name string
		root fs.FS
		want cgroup
	}{
		{"version 2", fstest.MapFS{
			"cgroup.controllers": file("cpu memory\n"), "cpu.max": file("150000 100000\n"), "memory.max": file("536870912\n"),
			"cpu.stat": file("usage_usec 7\nnr_throttled 2\nthrottled_usec 1500\n"),
		}, cgroup{1500, 512 << 20, 1_500_000}},
		{"version 2, no limit", fstest.MapFS{
			"cgroup.controllers": file("cpu memory\n"), "cpu.max": file("max 100000\n"), "memory.max": file("max\n"),
			"cpu.stat": file("usage_usec 7\n"),
		}, cgroup{0, 0, -1}},
		{"version 1", fstest.MapFS{
			"cpu/cpu.cfs_quota_us": file("50000\n"), "cpu/cpu.cfs_period_us": file("100000\n"), "memory/memory.limit_in_bytes": file("67108864\n"),
			"cpu/cpu.stat": file("nr_periods 10\nnr_throttled 3\nthrottled_time 12345\n"),
		}, cgroup{500, 64 << 20, 12345}},
		{"version 1, no limit", fstest.MapFS{
			"cpu/cpu.cfs_quota_us": file("-1\n"), "cpu/cpu.cfs_period_us": file("100000\n"), "memory/memory.limit_in_bytes": file("9223372036854771712\n"),
			"cpu/cpu.stat": file("throttled_time 0\n"),
		}, cgroup{0, 0, 0}},
		{"none", fstest.MapFS{}, cgroup{0, 0, -1}},
	} {
		if got := readCgroup(tt.root); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
