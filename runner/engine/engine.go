// Package engine drives the clients of a workload: it connects them, releases them
// together, times their events and stops them.
package engine

import (
	"context"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/measure"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/workload"
)

// Engine is a way of driving clients. Default is the best for the platform, Goroutines
// the one that runs anywhere.
type Engine interface {
	// Run drives the job to its end, or until ctx ends. It returns what was measured in
	// any case.
	Run(ctx context.Context, job *Job) Measurement
}

// Connection is a session that its engine opens and closes. When the context ends
// with which it was opened, its connection is closed, also under a call in progress.
type Connection interface {
	workload.Session
	Stats() workload.Stats
	Close() error
}

// Job is a load on one server.
type Job struct {
	Workload workload.Workload
	// Load has the workload's conventions put in, see workload.Workload.Load. Where several
	// replicas share a run, it is this one's share.
	Load contract.Load
	// First is the index of the first client here among all Total clients of the run; a
	// Total of 0 is Load.Clients.
	First, Total int
	// Ready is called once when all clients have connected, and returns when they may go.
	// Its error ends the job. It may be nil.
	Ready func(ctx context.Context) error
	// Connect opens a session of a client, which waits as it is told.
	Connect func(ctx context.Context, how mysql.Transport) (Connection, error)
	// Phase is told which part begins, Connect, Warmup or Measure, on any goroutine. It
	// may be nil.
	Phase func(contract.Phase)
	// Grace is how long clients may take to finish their event when the job is stopped or
	// Load.Duration is over, before their connections are closed.
	Grace time.Duration
	// Monitor watches the job from outside. It may be nil.
	Monitor *Monitor
}

// Measurement is what a job gave.
type Measurement struct {
	// Start is the beginning of the measured part; zero where it was not reached.
	Start time.Time
	// Elapsed is from Start to the end of the last client.
	Elapsed    time.Duration
	Operations []contract.Operation
	Series     []contract.Interval
	Totals     measure.Totals
	Statements workload.Stats
	// Attempts counts events and retries.
	Attempts, Retries int64
	// Wakeups say how late timers were: those of clients that waited for the clock, and one
	// each 10 ms.
	Wakeups measure.Wakeups
	// LoopTime is that of all event loops together, and LoopIdle how much of it they
	// waited. Both are zero where there is none.
	LoopTime, LoopIdle time.Duration
	// Err is what ended the job early, nil where its stop rule did. It does not say that
	// ctx has ended.
	Err error
}
