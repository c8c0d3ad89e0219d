// Package plan turns a spec into runs and decides what should exist now. It is
// pure: no client, no clock of its own, no I/O.
package plan

import (
	"fmt"

	"dbbench.dev/operator/api/v1alpha1"
)

// Run is one target × point × iteration: one Job.
type Run struct {
	// ID is stable and unique in an execution, and fit for a label and a ConfigMap
	// key, such as "p0003-mariadb-i2".
	ID string
	// Point names the combination of the axes' values, the same on every target.
	Point string
	// Dataset names the data that the run shares with others; it is empty where each run
	// loads its own, or none does.
	Dataset string
	// Attempt is how often the run was begun before and lost.
	Attempt int32
	// Target is the name of the target.
	Target string
	// Parameters are the axes' values of the point, by path.
	Parameters v1alpha1.Parameters
	// Iteration counts from 1.
	Iteration int32
	// Workload and Load are the spec's with the parameters set.
	Workload v1alpha1.Workload
	Load     v1alpha1.Load
}

// SpecError is a fault of a spec that admission could not see. It is final: only a
// change of the spec mends it.
type SpecError struct {
	// Reason is a condition reason: InvalidSpec.
	Reason string
	// Path names the field, such as spec.sweep.axes[1].values[0].
	Path string
	// Message says what is wrong with it, and what to write instead.
	Message string
}

func (e *SpecError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Message) }

func invalid(path, format string, args ...any) *SpecError {
	return &SpecError{Reason: v1alpha1.ReasonInvalidSpec, Path: path, Message: fmt.Sprintf(format, args...)}
}
