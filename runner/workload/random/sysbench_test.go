//go:build linux

package random

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestIsSysbench has sysbench 1.0 draw by the distributions that it has, and compares:
// two samples of one distribution fill the same bins.
func TestIsSysbench(t *testing.T) {
	const n, sample, bins = 10000, 200_000, 400
	for name, kind := range map[string]Kind{"uniform": Uniform, "gaussian": Gaussian, "special": Special, "pareto": Pareto} {
		t.Run(name, func(t *testing.T) {
			var theirs, ours [bins]float64
			for _, v := range sysbench(t, name, n, sample) {
				theirs[(v-1)*bins/n]++
			}
			for v, c := range counts(t, defaults(kind), n) {
				if v > 0 {
					ours[(v-1)*bins/n] += float64(c) * sample / draws
				}
			}
			for b := range bins {
				// The deviation of a difference of two counts, of which ours is of a larger sample.
				deviation := math.Sqrt(ours[b] * (1 + float64(sample)/draws))
				if math.Abs(theirs[b]-ours[b]) > 5*deviation+3 {
					t.Errorf("values %d to %d: sysbench drew %.0f, we %.0f", b*n/bins+1, (b+1)*n/bins, theirs[b], ours[b])
				}
			}
		})
	}
}

// sysbench draws a sample of 1 to n.
func sysbench(t *testing.T, distribution string, n, sample int) []int {
	t.Helper()
	tool, err := exec.LookPath("sysbench")
	if err != nil {
		t.Fatalf("%v: install it with: apt-get install -y --no-install-recommends sysbench", err)
	}
	script := filepath.Join(t.TempDir(), "draw.lua")
	text := fmt.Sprintf("function event() for i = 1, %d do print(sysbench.rand.%s(1, %d)) end end\n", sample, distribution, n)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, script, "--events=1", "--time=0", "--rand-seed=1", "run").Output()
	if err != nil {
		t.Fatalf("sysbench: %v\n%s", err, out)
	}
	var values []int
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if v, err := strconv.Atoi(lines.Text()); err == nil {
			values = append(values, v)
		}
	}
	if len(values) != sample {
		t.Fatalf("sysbench drew %d values, want %d", len(values), sample)
	}
	return values
}
