//go:build linux

package main

import (
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"dbbench.dev/operator/runner/contract"
)

// checkCounts holds the parts of a record against each other.
func checkCounts(t *testing.T, r *contract.Record) {
	t.Helper()
	var series int64
	for _, i := range r.Series {
		series += i.Events
	}
	if series != r.Result.Events {
		t.Errorf("the series counts %d events, the result %d", series, r.Result.Events)
	}
	for _, o := range r.Operations {
		h, err := hdr.Decode([]byte(o.Histogram))
		if err != nil {
			t.Fatalf("histogram of %s: %v", o.Name, err)
		}
		if h.TotalCount() != o.Count {
			t.Errorf("the histogram of %s counts %d values, the operation %d", o.Name, h.TotalCount(), o.Count)
		}
	}
}
