// Package report makes of an execution's runs what people and programs read: a page
// that needs no network, figures as JSON and CSV, and text for benchstat. It is pure.
package report

import (
	"encoding/json"
	"fmt"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// Input is an execution.
type Input struct {
	Name, Namespace, Execution string
	// Started and Completed are zero where they are not known.
	Started, Completed time.Time
	// Workload is the workload in a word, such as slap/Write.
	Workload string
	// Spec tells of the targets, the sweep's axes and the thresholds.
	Spec v1alpha1.DBBenchmarkSpec
	// Runs are those of the execution. Where memory matters some of them may be trimmed;
	// they are then not shown over time.
	Runs []results.Envelope
	// Baseline is what the execution is compared with, nil for nothing.
	Baseline *results.Baseline
	// Failure is why the execution failed, empty where it did not.
	Failure string
	// Limit is the size in bytes of all files together, 0 for no limit. What does not fit
	// is left out, and the files say so.
	Limit int
}

// Files are the report.
type Files struct {
	HTML, JSON, CSV, Benchstat []byte
	// Document is what JSON holds.
	Document results.Document
}

// Data are the files as the data of a ConfigMap.
func (f Files) Data() map[string]string {
	return map[string]string{
		results.HTMLKey: string(f.HTML), results.SummaryKey: string(f.JSON),
		results.CSVKey: string(f.CSV), results.BenchstatKey: string(f.Benchstat),
	}
}

func (f Files) size() int { return len(f.HTML) + len(f.JSON) + len(f.CSV) + len(f.Benchstat) }

// room is what a report may hold.
type room struct {
	points  int // of all files
	details int // points that the page shows with charts of their own
}

// Build makes the report of an execution. It fails only where a number is none.
func Build(in Input) (Files, error) {
	d := newDocument(in)
	r := room{points: len(d.Points), details: len(d.Points)}
	const (
		leastDetails   = 4
		bytesPerDetail = 4000 // at least
		bytesPerPoint  = 1500
	)
	if in.Limit > 0 {
		r.details = min(r.details, in.Limit/bytesPerDetail)
		r.points = min(r.points, in.Limit/bytesPerPoint)
	}
	for {
		f, err := build(in, d, r)
		switch {
		case err != nil:
			return Files{}, err
		case in.Limit == 0 || f.size() <= in.Limit:
			return f, nil
		case r.details > leastDetails:
			r.details /= 2
		case r.points > 1:
			r.points = r.points * 3 / 4
		case r.details > 0:
			r.details = 0
		default:
			return Files{}, fmt.Errorf("the report takes %d bytes even without points, more than %d", f.size(), in.Limit)
		}
	}
}

func build(in Input, d results.Document, r room) (f Files, err error) {
	d = cut(d, r.points)
	f.Document = d
	if f.JSON, err = encode(d); err != nil {
		return f, fmt.Errorf("%s: %w", results.SummaryKey, err)
	}
	f.CSV = csvOf(d)
	f.Benchstat = benchstatOf(d)
	f.HTML, err = page(in, d, r.details)
	return f, err
}

// encode indents what is short enough to be read by eye.
func encode(d results.Document) ([]byte, error) {
	const short = 100
	if len(d.Points) > short {
		return json.Marshal(d)
	}
	return json.MarshalIndent(d, "", " ")
}

// cut leaves as many points as there is room for.
func cut(d results.Document, points int) results.Document {
	if points >= len(d.Points) {
		return d
	}
	d.PointsLeftOut = len(d.Points) - points
	d.Points = d.Points[:points]
	kept := map[string]bool{}
	for _, p := range d.Points {
		kept[p.ID+" "+p.Target] = true
	}
	var comparisons []results.Comparison
	for _, c := range d.Comparisons {
		if kept[c.Point+" "+c.Target] {
			comparisons = append(comparisons, c)
		}
	}
	d.Comparisons = comparisons
	return d
}
