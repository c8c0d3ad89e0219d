//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// result holds the samples of the pairs.
type result struct{ ours, theirs []sample }

// ratio is one of what is compared, ours over theirs.
type ratio int

const (
	throughputRatio ratio = iota
	cpuRatio
	memoryRatio
	p99Ratio
	ratios
)

// of reads the number of a sample; NaN where it has none.
func (r ratio) of(s sample) float64 {
	switch r {
	case throughputRatio:
		return s.throughput()
	case cpuRatio:
		return s.cpuPerEvent()
	case memoryRatio:
		return float64(s.memory)
	case p99Ratio:
		if s.p99 > 0 {
			return s.p99.Seconds()
		}
	}
	return math.NaN()
}

// bound is what a median ratio is to keep to.
type bound struct {
	ratio ratio
	limit float64
	least bool // the limit is the least allowed, not the most
}

func (b bound) met(median float64) bool {
	if b.least {
		return median >= b.limit
	}
	return median <= b.limit
}

func printHead(out io.Writer) {
	fmt.Fprintln(out, "ours / theirs, medians of pairs (least-most)")
	fmt.Fprintf(out, "%-16s %7s  %-18s %-18s %-18s %-18s  %-21s  %-17s  %-17s  %s\n", "load", "clients",
		"throughput", "CPU per event", "peak memory", "p99", "events/s", "CPU µs per event", "peak MiB", "bounds")
}

func (r *result) print(out io.Writer, c *cell, clients int) {
	fmt.Fprintf(out, "%-16s %7d ", c.name, clients)
	for k := range ratios {
		fmt.Fprintf(out, " %-18s", r.text(k))
	}
	fmt.Fprintf(out, "  %10.0f %10.0f  %8.1f %8.1f  %8.1f %8.1f ", r.median(r.ours, throughputRatio, 1), r.median(r.theirs, throughputRatio, 1),
		r.median(r.ours, cpuRatio, 1e6), r.median(r.theirs, cpuRatio, 1e6),
		r.median(r.ours, memoryRatio, 1.0/(1<<20)), r.median(r.theirs, memoryRatio, 1.0/(1<<20)))
	if c.bounds != nil {
		for _, b := range c.bounds(clients) {
			verdict := "met"
			if !b.met(median(r.pairs(b.ratio))) {
				verdict = "missed"
			}
			sign := "<="
			if b.least {
				sign = ">="
			}
			fmt.Fprintf(out, " %s%s%.2f %s", []string{"throughput", "CPU", "memory", "p99"}[b.ratio], sign, b.limit, verdict)
		}
	}
	fmt.Fprintln(out)
}

// pairs are the ratios of the pairs, in order of size.
func (r *result) pairs(k ratio) []float64 {
	var out []float64
	for i := range r.ours {
		if x := k.of(r.ours[i]) / k.of(r.theirs[i]); !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}

func (r *result) text(k ratio) string {
	x := r.pairs(k)
	if len(x) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", median(x), x[0], x[len(x)-1])
}

func (r *result) median(samples []sample, k ratio, unit float64) float64 {
	var x []float64
	for _, s := range samples {
		x = append(x, k.of(s)*unit)
	}
	slices.Sort(x)
	return median(x)
}

// median is that of numbers in order of size.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
