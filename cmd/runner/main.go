// Command runner does one run of a benchmark: it reads the run's spec, generates the
// load, and writes the record to standard output as JSON lines. Diagnostics in words
// go to standard error.
//
//	runner [--spec FILE] [--termination-log FILE]
//	runner cleanup [--spec FILE] [--termination-log FILE]
//
// The second form drops what the benchmark of the spec has made in the target and
// writes no record; that there is nothing to drop is success.
//
// The replica is the environment variable JOB_COMPLETION_INDEX, 0 where it is not set;
// the name of its node, for the record, DBBENCH_NODE_NAME.
//
// Exit codes:
//
//	0  the record is complete and the run succeeded; or all was cleaned up
//	1  the record is complete and says that the run failed or is partial; or the
//	   clean-up failed
//	2  there is no record: the arguments or the spec are wrong
//	3  the record is not complete: it could not be written
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"dbbench.dev/operator/runner"
	"dbbench.dev/operator/runner/contract"
	"dbbench.dev/operator/runner/engine"
)

const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNoRecord = 3
)

// cleanupTime bounds the form "runner cleanup".
const cleanupTime = time.Minute

// gcPercent has the garbage of the load, which is short-lived, collected less often
// than is the default. The heap that stays is a few megabytes.
const gcPercent = 400

func main() {
	debug.SetGCPercent(gcPercent)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		cancel(runner.ErrInterrupted)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

// arguments are those of the command line.
type arguments struct {
	cleanup        bool
	specPath       string
	terminationLog string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	a, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage
	}
	spec, replica, err := read(a.specPath, getenv)
	if err != nil {
		failure := &contract.Failure{Class: contract.ClassInvalidRunSpec, Message: err.Error()}
		a.terminate(stderr, "", contract.OutcomeFailed, failure)
		return exitUsage
	}
	if a.cleanup {
		return clean(ctx, a, spec, stderr)
	}

	result, err := runner.Run(ctx, spec, contract.NewEncoder(stdout), runner.Options{
		Replica: replica, Version: version(), Engine: engine.Default(), Node: getenv(contract.NodeNameEnv),
	})
	if err != nil {
		failure := &contract.Failure{Class: contract.ClassRunnerError, Message: "the record could not be written: " + err.Error()}
		a.terminate(stderr, spec.Run.ID, contract.OutcomeFailed, failure)
		return exitNoRecord
	}
	a.terminate(stderr, spec.Run.ID, result.Outcome, result.Failure)
	if result.Outcome != contract.OutcomeSucceeded {
		return exitFailed
	}
	return exitOK
}

func parse(args []string, stderr io.Writer) (arguments, error) {
	var a arguments
	if len(args) > 0 && args[0] == "cleanup" {
		a.cleanup = true
		args = args[1:]
	}
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&a.specPath, "spec", contract.RunSpecPath, "the run's spec")
	flags.StringVar(&a.terminationLog, "termination-log", "", "where the termination message goes, such as "+contract.TerminationPath)
	if err := flags.Parse(args); err != nil {
		return a, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "unexpected argument %q; the only command is cleanup\n", flags.Arg(0))
		return a, errors.New("unexpected argument")
	}
	return a, nil
}

// read reads the spec and which of its replicas this is.
func read(path string, getenv func(string) string) (*contract.RunSpec, int32, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("run spec: %w", err)
	}
	spec, err := contract.DecodeRunSpec(b)
	if err != nil {
		return nil, 0, err
	}
	index := getenv(contract.ReplicaEnv)
	if index == "" {
		return spec, 0, nil
	}
	replica, err := strconv.ParseInt(index, 10, 32)
	if err != nil || replica < 0 || int32(replica) >= spec.Replicas {
		return nil, 0, fmt.Errorf("%s is %q, must be 0 to %d", contract.ReplicaEnv, index, spec.Replicas-1)
	}
	return spec, int32(replica), nil
}

func clean(ctx context.Context, a arguments, spec *contract.RunSpec, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	err := runner.Clean(ctx, spec, stderr)
	if err == nil {
		a.terminate(stderr, spec.Run.ID, contract.OutcomeSucceeded, nil)
		return exitOK
	}
	var failure *contract.Failure
	if !errors.As(err, &failure) {
		failure = &contract.Failure{Class: contract.ClassCleanupFailed, Message: err.Error()}
	}
	a.terminate(stderr, spec.Run.ID, contract.OutcomeFailed, failure)
	return exitFailed
}

// terminate leaves the termination message behind, and a failure on stderr in words.
func (a arguments) terminate(stderr io.Writer, run string, outcome contract.Outcome, failure *contract.Failure) {
	if failure != nil {
		fmt.Fprintf(stderr, "%s: %v\n", failure.Class, failure)
	}
	if a.terminationLog == "" {
		return
	}
	b, err := contract.EncodeTerminationMessage(contract.TerminationMessage{Run: run, Outcome: outcome, Failure: failure})
	if err == nil {
		err = os.WriteFile(a.terminationLog, b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(stderr, "the termination message could not be written:", err)
	}
}

// version is that of the build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
