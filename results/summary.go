package results

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// SummaryVersion names the revision of Document that this build writes and reads.
const SummaryVersion = "dbbench.dev/summary/v1"

// The keys of a report's ConfigMap.
const (
	SummaryKey   = "summary.json"
	CSVKey       = "summary.csv"
	BenchstatKey = "benchstat.txt"
	HTMLKey      = "report.html"
)

// Document is summary.json: an execution in figures.
type Document struct {
	Version   string    `json:"version"`
	Benchmark string    `json:"benchmark"`
	Namespace string    `json:"namespace,omitempty"`
	Execution string    `json:"execution,omitempty"`
	Workload  string    `json:"workload"`
	Started   time.Time `json:"started,omitzero"`
	Completed time.Time `json:"completed,omitzero"`
	// Failure is why the execution failed; absent where it did not.
	Failure string `json:"failure,omitempty"`
	// Thresholds is their verdict; absent where there are none.
	Thresholds *Verdict `json:"thresholds,omitempty"`
	// Baseline names what the execution is compared with.
	Baseline string `json:"baseline,omitempty"`
	// Warnings are about the execution as a whole; each point has its own.
	Warnings     []string             `json:"warnings,omitempty"`
	Environments []TargetEnvironment  `json:"environments,omitempty"`
	Differences  []VariableDifference `json:"differences,omitempty"`
	Points       []Point              `json:"points"`
	// PointsLeftOut counts the points for which there was no room.
	PointsLeftOut int          `json:"pointsLeftOut,omitempty"`
	Comparisons   []Comparison `json:"comparisons,omitempty"`
}

// Baseline is an earlier result that another is compared with.
type Baseline struct {
	// Name says where it comes from.
	Name  string
	byKey map[string]Point
}

// NewBaseline makes a baseline of points.
func NewBaseline(name string, points []Point) *Baseline {
	b := &Baseline{Name: name, byKey: map[string]Point{}}
	for _, p := range points {
		b.byKey[p.Key()] = p
	}
	return b
}

func (b *Baseline) find(p Point) (Point, bool) {
	found, ok := b.byKey[p.Key()]
	return found, ok
}

// Points are those of the baseline, in the order of their ids, then of targets.
func (b *Baseline) Points() []Point {
	return slices.SortedFunc(maps.Values(b.byKey), func(p, q Point) int {
		return cmp.Or(cmp.Compare(p.ID, q.ID), cmp.Compare(p.Target, q.Target))
	})
}

// ReadBaseline reads the data of results ConfigMaps, or that of a report. Anybody may
// have written it: what is none is refused, and says what is wrong.
func ReadBaseline(name string, data map[string]string) (*Baseline, error) {
	if text, ok := data[SummaryKey]; ok {
		return readSummary(name, text)
	}
	var runs []Envelope
	for _, key := range slices.Sorted(maps.Keys(data)) {
		e, err := Decode(key, data[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range e.Records {
			if err := Check(&e.Records[i]); err != nil && e.Failure == nil {
				return nil, fmt.Errorf("%s: result of %s: %w", name, e.Run, err)
			}
		}
		runs = append(runs, e)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s holds neither results nor a %s", name, SummaryKey)
	}
	return NewBaseline(name, Points(runs, nil, 0)), nil
}

func readSummary(name, text string) (*Baseline, error) {
	var d Document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, SummaryKey, err)
	}
	if d.Version != SummaryVersion {
		return nil, fmt.Errorf("%s: %s: version is %q, this build reads %q", name, SummaryKey, d.Version, SummaryVersion)
	}
	for _, p := range d.Points {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %s: point %s: %w", name, SummaryKey, p.Label(), err)
		}
	}
	return NewBaseline(name, d.Points), nil
}

// check sees that a point which was read can be compared with.
func (p Point) check() error {
	if p.Events < 0 || p.Errors < 0 || p.Attempts < 0 {
		return errors.New("a count is negative")
	}
	for _, i := range p.Iterations {
		if i.EventsPerSecond < 0 || i.ElapsedSeconds < 0 || i.MeanNanos < 0 || i.P99Nanos < 0 {
			return fmt.Errorf("a number of iteration %d is negative", i.Iteration)
		}
	}
	if len(p.Iterations) > 0 && (p.EventsPerSecond == nil || p.ElapsedSeconds == nil) {
		return errors.New("it has iterations, but no eventsPerSecond or elapsedSeconds")
	}
	return nil
}
