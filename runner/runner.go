// Package runner does one run: it checks the server, loads the data, drives the
// clients, cleans up, and reports all of it as a record.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/engine"
	"dbbench.dev/operator/runner/mysql"
	"dbbench.dev/operator/runner/rendezvous"
	"dbbench.dev/operator/runner/workload"
)

const (
	// grace is how long clients may take to end their event when the run is stopped, or
	// the load's duration is over.
	grace = 1500 * time.Millisecond
	// closingTime bounds all that comes after the load: reading counters, checking and
	// cleaning up. With the grace it keeps within the 30 s that Kubernetes gives a pod to
	// end.
	closingTime = 15 * time.Second
	// saturated is the share of its processors above which the runner says that it may
	// have been the bottleneck, in percent.
	saturated = 90
	// worthJudging is the time below which that share says nothing: the start of a run
	// takes the processors in any case.
	worthJudging = time.Second
	// lateWakeup is how late one timer in a hundred may be without a word on it.
	lateWakeup = 5 * time.Millisecond
)

// ErrInterrupted is the cause with which the context of a run ends at a signal.
var ErrInterrupted = errors.New("interrupted")

// errTimeout is the cause with which the load ends when the run's time is over.
var errTimeout = errors.New("timeout")

// Options are what a run needs beside its spec.
type Options struct {
	Replica int32
	// Version is the runner's own.
	Version string
	Engine  engine.Engine
	// Node is the name of the node that the runner is on, empty where it is not known.
	Node string
}

// Run does the run and writes its record. The result is what the record says; the
// error is that of writing it.
func Run(ctx context.Context, spec *contract.RunSpec, enc *contract.Encoder, options Options) (contract.Result, error) {
	r := &run{spec: spec, options: options, enc: enc, began: time.Now()}
	r.phase.Store(string(contract.PhasePreflight))
	err := enc.Start(contract.Start{
		Run: spec.Run.ID, Execution: spec.Run.Execution, BenchmarkUID: spec.Run.BenchmarkUID, Replica: options.Replica,
		UnixNanos: r.began.UnixNano(), RunnerVersion: options.Version,
	})
	if err != nil {
		return contract.Result{}, err
	}
	stopProgress := r.reportProgress()
	failure := r.do(ctx)
	stopProgress()
	return r.report(failure)
}

// run is the state of a run.
type run struct {
	spec    *contract.RunSpec
	options Options
	enc     *contract.Encoder
	began   time.Time
	phase   atomic.Value // string(contract.Phase)
	monitor engine.Monitor

	connector   *mysql.Connector
	workload    workload.Workload
	load        contract.Load // of all replicas
	share       contract.Load // of this one
	first       int           // client of this replica among all
	party       rendezvous.Party
	server      mysql.Server
	acquired    bool // there may be something of ours to clean up
	prepared    bool // the workload may have left something
	before      mysql.Status
	usage       usage
	environment contract.Environment
	measured    engine.Measurement
	checks      map[string]string
	warnings    []string
}

// do takes the run through its phases. What is left behind is cleaned up in any case.
func (r *run) do(parent context.Context) *contract.Failure {
	ctx, cancel := context.WithTimeoutCause(parent, r.timeForLoad(), errTimeout)
	defer cancel()

	failure := r.together(ctx)
	if !r.acquired {
		return failure
	}
	// The closing has a time of its own: an interrupted run is cleaned up too.
	closing, cancelClosing := context.WithTimeout(context.WithoutCancel(parent), closingTime)
	defer cancelClosing()
	return r.close(closing, failure)
}

// timeForLoad leaves a part of the timeout to what comes after the load.
func (r *run) timeForLoad() time.Duration {
	timeout := time.Duration(r.spec.Timeout)
	return timeout - min(grace+closingTime, timeout/4)
}

// together is what the replicas of a run do together. It ends for all of them when it
// ends for one with a failure.
func (r *run) together(ctx context.Context) *contract.Failure {
	ctx, party, err := rendezvous.Join(ctx, r.spec, r.options.Replica)
	if err != nil {
		return mysql.FailureOf(err, contract.ClassRunnerError)
	}
	r.party = party
	failure := r.untilVerified(ctx)
	party.Leave(failure)
	return failure
}

// untilVerified is the run up to the end of the load and the look at what it left.
func (r *run) untilVerified(ctx context.Context) *contract.Failure {
	steps := []struct {
		do    func(context.Context) error
		class contract.Class // of errors that say nothing of their own
	}{
		{r.configure, contract.ClassInvalidRunSpec},
		{r.prepare, contract.ClassPrepareFailed},
		{r.measure, contract.ClassWorkloadFailed},
		{r.verify, contract.ClassVerifyFailed},
	}
	for _, step := range steps {
		err := step.do(ctx)
		// When time is over, errors are its consequence.
		if f := endOf(ctx); f != nil {
			return f
		}
		if err != nil {
			return mysql.FailureOf(err, step.class)
		}
	}
	return nil
}

// endOf says why the context has ended, nil if it has not.
func endOf(ctx context.Context) *contract.Failure {
	cause := context.Cause(ctx)
	var failure *contract.Failure
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &failure):
		return failure // of another replica
	case errors.Is(cause, errTimeout):
		return &contract.Failure{Class: contract.ClassDeadlineExceeded, Message: "the run did not end within its time",
			Hint: "raise spec.runTimeout, or lower what spec.load asks for"}
	}
	return &contract.Failure{Class: contract.ClassInterrupted, Message: "the runner was told to stop before the run had ended",
		Hint: "look for the reason among the pod's events: a deletion, an eviction, a drained node"}
}

func (r *run) configure(context.Context) (err error) {
	if r.workload, err = workload.New(r.spec.Workload); err != nil {
		return err
	}
	r.load = r.workload.Load(r.spec.Load)
	if r.share, r.first, err = rendezvous.Divide(r.load, r.options.Replica, r.spec.Replicas); err != nil {
		return err
	}
	r.connector, err = mysql.NewConnector(r.spec.Target)
	return err
}

// leads says that this replica sees to the data, and to what is reported of the server.
func (r *run) leads() bool { return r.options.Replica == 0 }

// prepare checks the server and sees to it that the data is there when it returns.
func (r *run) prepare(ctx context.Context) error {
	session, err := r.connector.Open(ctx, mysql.SessionOptions{})
	if err != nil {
		return mysql.FailureOf(err, contract.ClassTargetUnreachable)
	}
	defer session.Close()
	if err := r.preflight(session); err != nil {
		return mysql.FailureOf(err, contract.ClassPreflightFailed)
	}
	if r.leads() {
		return r.lead(ctx, session)
	}
	return r.follow(ctx)
}

// lead loads the data, once all replicas have come.
func (r *run) lead(ctx context.Context, session *mysql.Session) error {
	guard, err := r.acquire(session)
	if err != nil {
		return mysql.FailureOf(err, contract.ClassPreflightFailed)
	}
	if err := r.party.Await(ctx, rendezvous.Arrived); err != nil {
		return err
	}
	r.enter(contract.PhasePrepare)
	r.prepared = true
	if err := r.workload.Prepare(r.env(ctx, session, guard)); err != nil {
		return err
	}
	if err := r.party.Await(ctx, rendezvous.Prepared); err != nil {
		return err
	}
	variables, err := mysql.ReadVariables(session)
	if err != nil {
		return err
	}
	r.environment.ServerVariables, r.environment.ServerVariablesSHA256 = variables.Performance(), variables.SHA256()
	r.before, err = mysql.ReadStatus(session)
	return err
}

// follow waits for the data and looks at it.
func (r *run) follow(ctx context.Context) error {
	if err := r.party.Await(ctx, rendezvous.Arrived); err != nil {
		return err
	}
	r.enter(contract.PhasePrepare)
	if err := r.party.Await(ctx, rendezvous.Prepared); err != nil {
		return err
	}
	follower, ok := r.workload.(workload.Follower)
	if !ok {
		return nil
	}
	session, err := r.connector.Open(ctx, mysql.SessionOptions{Database: r.spec.Target.Database})
	if err != nil {
		return err
	}
	defer session.Close()
	return follower.Follow(r.env(ctx, session, nil))
}

// preflight looks whether the server can carry the load. It reads only.
func (r *run) preflight(session *mysql.Session) error {
	var err error
	if r.server, err = mysql.Inspect(session); err != nil {
		return err
	}
	r.environment.ServerVersion, r.environment.ServerFlavor = r.server.Version, r.server.Flavor()
	demand := mysql.Demand{Requirements: r.workload.Requirements(), Clients: int64(r.load.Clients), Replicas: int64(r.spec.Replicas)}
	if f := r.server.Check(demand); f != nil {
		return f
	}
	if r.leads() {
		r.warnings = append(r.warnings, r.server.Warnings(demand)...)
	}
	return nil
}

// acquire makes the database the benchmark's, and looks whether the user may do there
// what the workload does.
func (r *run) acquire(session *mysql.Session) (*mysql.Guard, error) {
	need := r.workload.Requirements()
	guard := r.guard(session)
	r.acquired = true
	if err := guard.Acquire(need.Tables); err != nil {
		return nil, err
	}
	return guard, guard.Probe(need.Privileges)
}

func (r *run) guard(session *mysql.Session) *mysql.Guard {
	return mysql.NewGuard(session, r.server, r.spec.Run, r.spec.Target)
}

func (r *run) env(ctx context.Context, session *mysql.Session, guard *mysql.Guard) *workload.Env {
	return &workload.Env{Session: session, Tables: guard, Adoption: guard, MariaDB: r.server.Flavor() == mysql.MariaDB,
		Mode: r.spec.Prepare, Clients: int(r.load.Clients), Stopped: ctx.Done(),
		Connect: func() (workload.Connection, error) {
			return r.connector.Open(ctx, mysql.SessionOptions{Database: r.spec.Target.Database})
		}}
}

// measure drives the load.
func (r *run) measure(ctx context.Context) error {
	need := r.workload.Requirements()
	r.usage = readUsage()
	r.measured = r.options.Engine.Run(ctx, &engine.Job{
		Workload: r.workload, Load: r.share, First: r.first, Total: int(r.load.Clients),
		Ready: func(ctx context.Context) error { return r.party.Await(ctx, rendezvous.Connected) },
		Phase: r.enter, Grace: grace, Monitor: &r.monitor,
		Connect: func(ctx context.Context, how mysql.Transport) (engine.Connection, error) {
			return r.connector.Open(ctx, mysql.SessionOptions{
				Database: r.spec.Target.Database, MultiStatements: need.MultiStatements, Patient: true, Transport: how,
			})
		},
	})
	r.used(readUsage().since(r.usage))
	r.warn()
	if r.measured.Err != nil {
		return r.measured.Err
	}
	if reporter, ok := r.workload.(workload.Reporter); ok {
		warnings, err := reporter.Report()
		if err != nil {
			return err
		}
		r.warnings = append(r.warnings, warnings...)
	}
	// Clients of other replicas may have left nothing to do for those here.
	idle := !r.leads() && r.measured.Attempts == 0
	if r.measured.Totals.Events == 0 && !idle && ctx.Err() == nil {
		return &contract.Failure{Class: contract.ClassWorkloadFailed, Message: "not one event succeeded in the measured part",
			Hint: "give it more time or events: see spec.load"}
	}
	return nil
}

func (r *run) used(u contract.RunnerUsage) {
	u.Node = r.options.Node
	if m := r.measured; m.LoopTime > 0 {
		u.LoopBusyPermille = min(max(int64(1000*(m.LoopTime-m.LoopIdle)/m.LoopTime), 0), 1000)
	}
	u.WakeupP99Nanos, u.WakeupMaxNanos = r.measured.Wakeups.P99, r.measured.Wakeups.Max
	r.environment.Runner = u
}

// warn notes what a reader must know to trust the numbers.
func (r *run) warn() {
	u, elapsed := r.environment.Runner, r.measured.Elapsed
	if n := r.measured.Totals.Clamped; n > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d latencies lay outside of 1 µs to 1 h and were recorded as the limit", n))
	}
	processors := float64(u.GOMAXPROCS)
	if u.CPULimitMilli > 0 {
		processors = min(processors, float64(u.CPULimitMilli)/1000)
	}
	used := float64(u.CPUUserNanos+u.CPUSystemNanos) * 100 / (float64(elapsed) * processors)
	if elapsed >= worthJudging && used >= saturated {
		r.warnings = append(r.warnings, fmt.Sprintf("the runner used %.0f %% of its %.3g processors: it may have been the bottleneck",
			min(used, 100), processors))
	}
	if u.ThrottledNanos > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("the runner was held back by its CPU limit for %s", time.Duration(u.ThrottledNanos)))
	}
	r.warnOfTime()
}

// warnOfTime notes where the generator did not keep to its times.
func (r *run) warnOfTime() {
	u, totals := r.environment.Runner, r.measured.Totals
	if busy := u.LoopBusyPermille / 10; r.measured.Elapsed >= worthJudging && busy >= saturated {
		r.warnings = append(r.warnings, fmt.Sprintf("the loops that drive the clients were busy for %d %% of the time: answers waited for the runner, which may have been the bottleneck", busy))
	}
	if late := time.Duration(u.WakeupP99Nanos); r.measured.Wakeups.Count >= 100 && late > lateWakeup {
		r.warnings = append(r.warnings, fmt.Sprintf("one in a hundred timers was %s late or more: the runner had too little CPU, and may have been the bottleneck", late))
	}
	if totals.Dropped > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d events of spec.load.rate were dropped: no client was free in time: the server or the runner cannot keep up, or spec.load.clients are too few", totals.Dropped))
	}
}

// close reads the counters, where that was not done, and cleans up, as far as the state
// of the server lets it. The first failure is the run's.
func (r *run) close(ctx context.Context, failure *contract.Failure) *contract.Failure {
	session, err := r.connector.Open(ctx, mysql.SessionOptions{})
	if err != nil {
		return r.closingFailure(failure, err, contract.ClassCleanupFailed)
	}
	defer session.Close()
	if err := r.readDeltas(session); err != nil {
		return r.closingFailure(failure, err, contract.ClassVerifyFailed)
	}
	guard := r.guard(session)
	if r.spec.Cleanup == contract.CleanupNever || r.spec.Cleanup == contract.CleanupOnSuccess && failure != nil {
		return failure
	}
	r.enter(contract.PhaseCleanup)
	if cleaner, ok := r.workload.(workload.Cleaner); ok && r.prepared {
		if err := cleanUp(cleaner, guard, r.env(ctx, session, guard)); err != nil {
			failure = r.closingFailure(failure, err, contract.ClassCleanupFailed)
		}
	}
	left, err := guard.Release()
	if err != nil {
		return r.closingFailure(failure, err, contract.ClassCleanupFailed)
	}
	if len(left) > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("the database %s was kept: it holds what the benchmark did not make, such as %s",
			r.spec.Target.Database, left[0]))
	}
	return failure
}

// verify looks at what the load left when all replicas are done, on a session of its own. It has the time of the
// run, which may be needed to read large tables.
func (r *run) verify(ctx context.Context) error {
	if err := r.party.Await(ctx, rendezvous.Done); err != nil || !r.leads() {
		return err
	}
	r.enter(contract.PhaseVerify)
	session, err := r.connector.Open(ctx, mysql.SessionOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	if err := r.readDeltas(session); err != nil {
		return err
	}
	guard := r.guard(session)
	if err := guard.Use(); err != nil {
		return err
	}
	r.checks, err = r.workload.Verify(r.env(ctx, session, guard))
	return err
}

// readDeltas reads the server's counters once, before the runner itself makes them grow.
func (r *run) readDeltas(session *mysql.Session) error {
	if r.before == nil || r.environment.StatusDeltas != nil {
		return nil
	}
	after, err := mysql.ReadStatus(session)
	if err == nil {
		r.environment.StatusDeltas = after.Since(r.before)
	}
	return err
}

// cleanUp has a workload remove what is not a table, where there is a database to
// remove it from.
func cleanUp(cleaner workload.Cleaner, guard *mysql.Guard, env *workload.Env) error {
	entered, err := guard.Enter()
	if err != nil || !entered {
		return err
	}
	return cleaner.Cleanup(env)
}

// closingFailure keeps the failure that was there before, and says what else went
// wrong as a warning.
func (r *run) closingFailure(failure *contract.Failure, err error, class contract.Class) *contract.Failure {
	later := mysql.FailureOf(err, class)
	if failure == nil {
		if class == contract.ClassCleanupFailed {
			later.Class = class
		}
		return later
	}
	r.warnings = append(r.warnings, "cleaning up: "+later.Error())
	return failure
}

// report writes what remains of the record.
func (r *run) report(failure *contract.Failure) (contract.Result, error) {
	m := r.measured
	result := contract.Result{
		Outcome: outcome(failure, m.Totals.Events), Failure: failure, Clients: r.share.Clients,
		ElapsedNanos: int64(m.Elapsed), EndUnixNanos: time.Now().UnixNano(), Events: m.Totals.Events, Errors: m.Totals.Errors, ErrorsByNumber: m.Totals.ErrorsByNumber, RetriesByNumber: m.Totals.RetriesByNumber,
		Attempts: m.Attempts, Retries: m.Retries, Late: m.Totals.Late, Dropped: m.Totals.Dropped, Reconnects: m.Statements.Reconnects,
		Reads: m.Statements.Reads, Writes: m.Statements.Writes, Other: m.Statements.Other,
		Warnings: r.warnings, Checks: r.checks,
	}
	if !m.Start.IsZero() {
		result.MeasureStartUnixNanos = m.Start.UnixNano()
	}
	if r.environment.Runner.GOMAXPROCS == 0 {
		r.used(readUsage().since(usage{}))
	}
	if err := r.enc.Environment(r.environment); err != nil {
		return result, err
	}
	for _, o := range m.Operations {
		if err := r.enc.Operation(o); err != nil {
			return result, err
		}
	}
	if err := r.enc.Series(m.Series); err != nil {
		return result, err
	}
	if err := r.enc.Result(result); err != nil {
		return result, err
	}
	return result, r.enc.End()
}

// outcome tells a run that was cut off from one that failed by itself.
func outcome(failure *contract.Failure, events int64) contract.Outcome {
	if failure == nil {
		return contract.OutcomeSucceeded
	}
	switch failure.Class {
	case contract.ClassInterrupted, contract.ClassDeadlineExceeded, contract.ClassTargetUnreachable,
		contract.ClassReplicaLost, contract.ClassPeerFailed:
		if events > 0 {
			return contract.OutcomePartial
		}
	}
	return contract.OutcomeFailed
}

// enter begins a phase and shows it at once.
func (r *run) enter(p contract.Phase) {
	r.phase.Store(string(p))
	r.progress()
}

// progress writes a line of progress. That it could not be written shows in the lines
// that must be.
func (r *run) progress() {
	p := contract.Progress{Phase: contract.Phase(r.phase.Load().(string)), ElapsedNanos: int64(time.Since(r.began))}
	r.monitor.Progress(time.Now(), &p)
	if p.Phase == contract.PhaseMeasure {
		r.expectEnd(&p)
	}
	_ = r.enc.Progress(p)
}

// expectEnd fills in how far clients are that end by themselves, where that is nearer
// than what the stop rules say.
func (r *run) expectEnd(p *contract.Progress) {
	ender, ok := r.workload.(workload.Ender)
	if !ok {
		return
	}
	if ends := ender.Ends(); ends > 0 {
		p.PercentDone = max(p.PercentDone, int32(min(100, (p.Events+p.Errors)*100/ends)))
	}
}

// reportProgress writes progress at the interval of the spec until it is stopped.
func (r *run) reportProgress() (stop func()) {
	ticker := time.NewTicker(time.Duration(r.spec.ProgressInterval))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ticker.C:
				r.progress()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(quit)
		<-done
	}
}

// Clean drops what the benchmark of the spec has made in the target, if anything. It
// needs nothing but the server; the error is a *contract.Failure.
func Clean(ctx context.Context, spec *contract.RunSpec, log io.Writer) error {
	connector, err := mysql.NewConnector(spec.Target)
	if err != nil {
		return err
	}
	session, err := connector.Open(ctx, mysql.SessionOptions{})
	if err != nil {
		return mysql.FailureOf(err, contract.ClassTargetUnreachable)
	}
	defer session.Close()
	server, err := mysql.Inspect(session)
	if err != nil {
		return mysql.FailureOf(err, contract.ClassCleanupFailed)
	}
	guard := mysql.NewGuard(session, server, spec.Run, spec.Target)
	if err := cleanWorkload(ctx, spec, connector, session, guard); err != nil {
		fmt.Fprintf(log, "cleaning up: %v\n", err) // what it has left may be gone already
	}
	left, err := guard.Release()
	if err != nil {
		return mysql.FailureOf(err, contract.ClassCleanupFailed)
	}
	for _, name := range left {
		fmt.Fprintf(log, "kept: %s.%s, which the benchmark did not make\n", spec.Target.Database, name)
	}
	return nil
}

// cleanWorkload has the workload of a spec remove what is not a table.
func cleanWorkload(ctx context.Context, spec *contract.RunSpec, connector *mysql.Connector, session *mysql.Session, guard *mysql.Guard) error {
	w, err := workload.New(spec.Workload)
	if err != nil {
		return err
	}
	cleaner, ok := w.(workload.Cleaner)
	if !ok {
		return nil
	}
	return cleanUp(cleaner, guard, &workload.Env{Session: session, Tables: guard, Adoption: guard, Stopped: ctx.Done(),
		Connect: func() (workload.Connection, error) {
			return connector.Open(ctx, mysql.SessionOptions{Database: spec.Target.Database})
		}})
}
