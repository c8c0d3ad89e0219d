package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/results/report"
	"dbbench.dev/operator/runner"
	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/engine"
)

// gcPercent is that of the runner: its garbage is short-lived.
const gcPercent = 400

// runLocal does the runs of benchmarks in this process, one after another.
func runLocal(ctx context.Context, e *env, o *runOptions) error {
	all, err := o.read(e)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dbbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	if o.report != "" && len(all) > 1 {
		return usageError("--report goes with one benchmark")
	}
	var locals []*local
	var names []string
	for _, p := range all {
		servers, err := o.localFlags.servers(p.benchmark, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		l := newLocal(e, p, servers)
		if l.baseline, err = o.localFlags.readBaseline(p.benchmark); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
		locals = append(locals, l)
		names = append(names, p.name())
	}
	show := newProgress(e.ErrOut, e.width, names)
	var ended []result
	for _, l := range locals {
		l.show = func(b *v1alpha1.DBBenchmark) { show.show(b.Name, stateOf(b, "")) }
		if err := l.execute(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.benchmark.Name, err)
		}
		ended = append(ended, result{l.benchmark, stateOf(l.benchmark, "").reason, l.input})
		if ctx.Err() != nil {
			break
		}
	}
	err = conclude(e, o, ended)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("not all runs were done within %s", o.timeout)
	case ctx.Err() != nil:
		return exit{exitInterrupted, errors.New("interrupted")}
	}
	return err
}

// local is the execution of a benchmark without a cluster. What is done next, and what
// the results amount to, is decided as the controller decides it.
type local struct {
	benchmark *v1alpha1.DBBenchmark
	runs      []plan.Run
	results   map[string]results.Envelope
	cleanups  []plan.Attempt
	baseline  *results.Baseline
	servers   map[string]contract.Target
	now       func() time.Time
	show      func(*v1alpha1.DBBenchmark)
	warnings  io.Writer
}

// newLocal makes a benchmark of a file one that is here: all of its clients are of one
// process, and it starts at once.
func newLocal(e *env, p planned, servers map[string]contract.Target) *local {
	b := p.benchmark.DeepCopy()
	b.Namespace, b.Generation = "local-"+here(), 1
	b.UID = types.UID(b.Namespace + "-" + b.Name)
	b.Spec.Suspend, b.Spec.Schedule, b.Spec.Runner.Replicas = false, nil, 1
	return &local{benchmark: b, runs: p.runs, results: map[string]results.Envelope{}, servers: servers, now: e.now, warnings: e.ErrOut}
}

// here is a digest of the user and the machine. It makes what a benchmark leaves in a
// server the property of this user on this machine.
func here() string {
	who := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	sum := sha256.Sum256([]byte(who + "@" + host))
	return hex.EncodeToString(sum[:4])
}

// execute does the runs until the execution has ended, or ctx has.
func (l *local) execute(ctx context.Context) error {
	b := l.benchmark
	for {
		d := plan.Next(l.now(), b, plan.Observed{
			Runs: l.runs, Results: l.results, Cleanups: l.cleanups, Baseline: l.baseline, NoReport: true,
		})
		if ctx.Err() != nil {
			d.Create = nil
		}
		again := d.Begins(b) || d.Protect || d.Create != nil || len(d.CleanUp) > 0
		b.Status = d.Status
		l.show(b)
		if !again {
			return nil
		}
		if d.Protect {
			b.Finalizers = append(b.Finalizers, plan.Finalizer)
		}
		for _, c := range d.CleanUp {
			l.cleanUp(c)
		}
		if d.Create != nil {
			if err := l.do(ctx, *d.Create); err != nil {
				return err
			}
		}
	}
}

// input is what the execution amounts to.
func (l *local) input() (report.Input, error) {
	in, err := inputOf(l.benchmark, "")
	in.Namespace, in.Baseline = "", l.baseline // it was in none
	for _, run := range l.runs {
		if e, done := l.results[run.ID]; done {
			in.Runs = append(in.Runs, e)
		}
	}
	return in, err
}

// do does a run and keeps its result.
func (l *local) do(ctx context.Context, run plan.Run) error {
	spec, err := l.runSpec(run)
	if err != nil {
		return err
	}
	record := &recorder{saw: func(p contract.Progress) { l.showProgress(run, p) }}
	result, err := runner.Run(ctx, spec, contract.NewEncoder(record), runner.Options{Version: version(), Engine: engine.Default()})
	if err != nil {
		return err
	}
	l.results[run.ID] = l.judge(run, spec.Run, record, result)
	return nil
}

func (l *local) runSpec(run plan.Run) (*contract.RunSpec, error) {
	spec, err := resources.RunSpec(l.benchmark, l.benchmark.Status.Execution.ID, run)
	if err != nil {
		return nil, err
	}
	server := l.servers[run.Target]
	t := &spec.Target
	t.Host, t.Port, t.Socket = server.Host, server.Port, server.Socket
	t.UsernameFile, t.PasswordFile = server.UsernameFile, server.PasswordFile
	t.TLS.CAFile, t.TLS.CertFile, t.TLS.KeyFile = server.TLS.CAFile, server.TLS.CertFile, server.TLS.KeyFile
	return spec, spec.Validate()
}

// judge reads the record as the controller reads that of a pod.
func (l *local) judge(run plan.Run, id contract.Run, record *recorder, result contract.Result) results.Envelope {
	end := corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(l.now())}
	if result.Outcome != contract.OutcomeSucceeded {
		end.ExitCode = 1
	}
	report := plan.Report{Pod: new(pod(end))}
	report.Record, report.Err = contract.ReadRecord(&record.text, id)
	if report.Err == nil {
		if report.Err = results.Check(report.Record); report.Err != nil {
			report.Record = nil
		}
	}
	return plan.Judge(l.now(), run, plan.Attempt{}, []plan.Report{report})
}

// showProgress shows how far a run is.
func (l *local) showProgress(run plan.Run, p contract.Progress) {
	b := l.benchmark.DeepCopy()
	active := &v1alpha1.ActiveRun{ID: run.ID, Target: run.Target, Parameters: run.Parameters, Iteration: run.Iteration, Phase: string(p.Phase),
		P99Micros: p.P99Nanos / int64(time.Microsecond)}
	if p.PercentDone >= 0 {
		active.PercentDone = &p.PercentDone
	}
	if p.EventsPerSecondMilli > 0 {
		active.EventsPerSecond = strconv.FormatFloat(float64(p.EventsPerSecondMilli)/1000, 'f', 3, 64)
	}
	b.Status.Execution.ActiveRun = active
	l.show(b)
}

// closingTime bounds a clean-up. It has this time also after an interruption.
const closingTime = time.Minute

// cleanUp drops what runs have kept in a server for the runs after them.
func (l *local) cleanUp(c plan.Cleanup) {
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	spec, err := l.runSpec(plan.Run{ID: "cleanup", Target: c.Target, Workload: c.Workload, Load: c.Load})
	if err == nil {
		err = runner.Clean(ctx, spec, io.Discard)
	}
	done := corev1.ContainerStateTerminated{}
	if err != nil {
		fmt.Fprintf(l.warnings, "warning: the data in target %s may still be there: %v\n", c.Target, err)
		done.ExitCode = 1
	}
	l.cleanups = append(l.cleanups, plan.Attempt{
		Execution: c.Execution, Target: c.Target, Dataset: c.Dataset,
		Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(l.now())}}, Pods: []corev1.Pod{pod(done)},
	})
}

// pod is the place of a pod that has ended: what the planner knows of a runner.
func pod(end corev1.ContainerStateTerminated) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: plan.RunnerContainer, State: corev1.ContainerState{Terminated: &end},
	}}}}
}

// recorder keeps a record and looks at its progress as it is written, a line at a time.
type recorder struct {
	text bytes.Buffer
	saw  func(contract.Progress)
}

func (r *recorder) Write(line []byte) (int, error) {
	if p, err := contract.ReadProgress(bytes.NewReader(line)); err == nil && p != nil {
		r.saw(*p)
	}
	return r.text.Write(line)
}

// localOptions are the flags of --local. A value is for all targets or, written
// TARGET=VALUE, for one.
type localOptions struct {
	hosts, sockets, usernames, passwordFiles, defaultsFiles []string
	cas, certs, keys                                        []string
	baseline                                                string
}

// readBaseline reads the file of --baseline, nil where there is none.
func (o *localOptions) readBaseline(b *v1alpha1.DBBenchmark) (*results.Baseline, error) {
	switch {
	case o.baseline == "":
		return nil, nil
	case b.Spec.Baseline == nil:
		return nil, usageError("--baseline goes with a spec that has a baseline; or see kubectl dbbench compare")
	}
	text, err := os.ReadFile(o.baseline)
	if err != nil {
		return nil, err
	}
	points, err := readPoints(o.baseline, text)
	if err != nil {
		return nil, err
	}
	return results.NewBaseline(o.baseline, points), nil
}

// flagsOf lists the flags, where their values go and what they are.
func (o *localOptions) flagsOf() map[string]struct {
	values *[]string
	usage  string
} {
	type flag = struct {
		values *[]string
		usage  string
	}
	return map[string]flag{
		"host":          {&o.hosts, "The server as it is reached from here, HOST or HOST:PORT, in place of the spec's."},
		"socket":        {&o.sockets, "The unix socket of the server, in place of a host."},
		"username":      {&o.usernames, "Who to connect as."},
		"password-file": {&o.passwordFiles, "The file with the password. Without it there is none."},
		"defaults-file": {&o.defaultsFiles, "A MySQL option file with user, password, host, port, socket, ssl-ca … under [client]."},
		"ssl-ca":        {&o.cas, "The file with the certificate authority, in place of tls.caSecretRef."},
		"ssl-cert":      {&o.certs, "The file with the client's certificate, in place of tls.clientSecretRef."},
		"ssl-key":       {&o.keys, "The file with the client's key, in place of tls.clientSecretRef."},
	}
}

func (o *localOptions) addFlags(flags *pflag.FlagSet) {
	for name, f := range o.flagsOf() {
		flags.StringArrayVar(f.values, name, nil, "With --local: "+f.usage)
	}
	flags.StringVar(&o.baseline, "baseline", "", "With --local: The result in place of spec.baseline, as kubectl dbbench export has written it.")
}

// changed is one of the flags that was given, "" where none was.
func (o *localOptions) changed(flags *pflag.FlagSet) string {
	for name := range o.flagsOf() {
		if flags.Changed(name) {
			return name
		}
	}
	if flags.Changed("baseline") {
		return "baseline"
	}
	return ""
}
