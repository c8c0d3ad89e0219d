// Command kubectl-dbbench is the plugin of kubectl for DBBenchmarks: kubectl dbbench.
//
// Exit codes:
//
//	0    done; of run: every benchmark is complete, and no threshold is missed
//	1    an error: a file, the cluster or a server did not do its part
//	2    the command line is wrong
//	3    of run: a benchmark failed, or was suspended before its end
//	4    of run: all are complete, but thresholds are not met
//	130  interrupted
//
// Called by the name kubectl_complete-dbbench, as kubectl does for completion, it
// completes its own command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitFailed      = 3
	exitNotPassed   = 4
	exitInterrupted = 130
)

// completer is the name by which kubectl calls a plugin to complete its arguments.
const completer = "kubectl_complete-dbbench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == completer {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	silenceLog()
	code := run(ctx, args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// silenceLog keeps what client-go has to say of connections, beside the errors that it
// returns, from users.
func silenceLog() {
	klog.SetLogger(logr.Discard())
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(genericiooptions.IOStreams{In: stdin, Out: stdout, ErrOut: stderr})
	root.SetArgs(append([]string{}, args...)) // nil would be the process's own
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errSilent) {
		fmt.Fprintf(stderr, "error: %v\n", explain(err))
	}
	return exitCode(err)
}

// errSilent ends a command whose output has said all there is to say.
var errSilent = errors.New("")

// exit is an error with an exit code of its own.
type exit struct {
	code int
	error
}

func (e exit) Unwrap() error { return e.error }

func usageError(format string, args ...any) error {
	return exit{exitUsage, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var e exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	}
	return exitError
}

// explain adds to an error what to do about it, where that can be told.
func explain(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w\nThis cluster knows no DBBenchmark: install the operator (kubectl apply -k config/default), or look at --context", err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w\nTake the fields over with --force-conflicts, or leave them out of the file", err)
	}
	return err
}

const rootLong = `Benchmark MySQL and MariaDB from the command line.

Files are read as kubectl reads them: several documents in a file, lists,
directories, URLs, and - for standard input.

Exit codes: 0 done, 1 error, 2 wrong command line; of run also 3 a benchmark
failed, 4 thresholds are not met; 130 interrupted.`

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	e := newEnv(streams)
	root := &cobra.Command{
		Use:                        "kubectl-dbbench",
		Short:                      "Benchmark MySQL and MariaDB",
		Long:                       rootLong,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl dbbench"},
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w\nSee '%s --help'", err, cmd.CommandPath())
	})
	e.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache"
	e.completeFlags(root)
	root.AddCommand(
		newPlan(e), newValidate(e), newRun(e),
		newGet(e), newResults(e), newCompare(e), newReport(e), newExport(e),
		newCancel(e), newResume(e), newRerun(e),
		newVersion(e),
	)
	return root
}

// knownCommand refuses the arguments of the root, which are commands that do not exist.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	for _, s := range cmd.SuggestionsFor(args[0]) {
		hint += fmt.Sprintf("\nDid you mean %q?", s)
	}
	return usageError("unknown command %q%s\nSee '%s --help'", args[0], hint, cmd.CommandPath())
}

// exactly wants n arguments of the command line, what names them.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError("%s takes %s\nSee '%s --help'", cmd.Name(), what, cmd.CommandPath())
		}
		return nil
	}
}
