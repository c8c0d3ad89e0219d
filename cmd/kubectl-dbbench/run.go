package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

type runOptions struct {
	files
	output         string
	report         string
	forceConflicts bool
	wait           bool
	timeout        time.Duration
	local          bool
	localFlags     localOptions
}

func newRun(e *env) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Apply benchmarks and follow them to their end",
		Long: `Apply the objects of the files by server-side apply, follow the benchmarks among them to
their end, and print their results.

A benchmark that has already ended with the same spec is run again; one that is under
way is followed. One that kubectl dbbench cancel has suspended is run anew.

Interrupted with Ctrl-C, the command ends and the benchmarks go on in the cluster.

With --local there is no cluster: the runs are done by this process, one after another,
against servers that it can reach. See the flags below for how to name them; a value for
one target alone is written TARGET=VALUE.

Exit codes: 0 all benchmarks are complete and miss no threshold, 1 error, 2 wrong command
line, 3 a benchmark failed or is suspended, 4 thresholds are not met, 130 interrupted.`,
		Example: `  kubectl dbbench run -f bench.yaml
  kubectl dbbench run -f bench.yaml --wait=false
  kubectl dbbench run -f bench.yaml -o json > result.json
  kubectl dbbench run --local -f bench.yaml --host 127.0.0.1:3306 --username bench --password-file secret
  kubectl dbbench run --local -f bench.yaml --defaults-file ~/.my.cnf --socket /run/mysqld/mysqld.sock`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.local {
				return runLocal(cmd.Context(), e, &o)
			}
			if name := o.localFlags.changed(cmd.Flags()); name != "" {
				return usageError("--%s goes with --local; in a cluster the spec and its Secret say it", name)
			}
			return runInCluster(cmd.Context(), e, &o)
		},
	}
	o.addFlags(cmd.Flags())
	flags := cmd.Flags()
	addOutput(cmd, &o.output, resultFormats...)
	flags.StringVar(&o.report, "report", "", "Write a page for the browser to this file, too.")
	flags.BoolVar(&o.forceConflicts, "force-conflicts", false, "Take over fields that another manager has set.")
	flags.BoolVar(&o.wait, "wait", true, "Follow the benchmarks to their end.")
	flags.DurationVar(&o.timeout, "timeout", 0, "How long to follow them, such as 2h; 0 is without end. They go on in the cluster.")
	flags.BoolVar(&o.local, "local", false, "Do the runs here, without a cluster.")
	o.localFlags.addFlags(flags)
	return cmd
}

func runInCluster(ctx context.Context, e *env, o *runOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := e.connect()
	if err != nil {
		return err
	}
	followed, err := o.apply(ctx, e, c)
	if err != nil {
		return err
	}
	if len(followed) == 0 {
		return errors.New("there is no DBBenchmark in the files")
	}
	if !o.wait {
		return nil
	}
	if o.report != "" && len(followed) > 1 {
		return usageError("--report goes with one benchmark; see kubectl dbbench report")
	}
	ended, err := o.follow(ctx, e, c, followed)
	if err != nil {
		return err
	}
	var all []result
	for _, b := range ended {
		all = append(all, e.resultOf(ctx, c, b, ""))
	}
	return conclude(e, o, all)
}

// target is a benchmark to follow. What its status says of the execution stale is what
// was before.
type target struct {
	key   types.NamespacedName
	stale string
}

// apply applies the objects of the files in their order, and starts the benchmarks
// among them that would not start by themselves.
func (o *runOptions) apply(ctx context.Context, e *env, c *cluster) ([]target, error) {
	_, enforce, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := o.from(e, resource.NewBuilder(e.config).Unstructured().NamespaceParam(c.namespace).DefaultNamespace(), enforce).
		Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var followed []target
	for _, info := range infos {
		if info.Name == "" {
			return nil, fmt.Errorf("%s: metadata.name is missing", info.Source)
		}
		if !isBenchmark(info.Mapping.GroupVersionKind) {
			if err := o.applyObject(e, info); err != nil {
				return nil, err
			}
			continue
		}
		t, err := o.applyBenchmark(ctx, e, c, info)
		if err != nil {
			return nil, err
		}
		followed = append(followed, t)
	}
	return followed, nil
}

func (o *runOptions) applyObject(e *env, info *resource.Info) error {
	text, err := runtime.Encode(unstructured.UnstructuredJSONScheme, info.Object)
	if err != nil {
		return err
	}
	_, err = resource.NewHelper(info.Client, info.Mapping).WithFieldManager(fieldManager).WithFieldValidation(metav1.FieldValidationStrict).
		Patch(info.Namespace, info.Name, types.ApplyPatchType, text, &metav1.PatchOptions{Force: &o.forceConflicts})
	if err != nil {
		return fmt.Errorf("%s: %w", info.Source, err)
	}
	return (&printers.NamePrinter{Operation: "serverside-applied"}).PrintObj(info.Object, e.ErrOut)
}

// applyBenchmark applies a benchmark. Where that alone starts nothing, since the same
// was run before, an execution is asked for.
func (o *runOptions) applyBenchmark(ctx context.Context, e *env, c *cluster, info *resource.Info) (target, error) {
	t := target{key: types.NamespacedName{Namespace: info.Namespace, Name: info.Name}}
	var before, after v1alpha1.DBBenchmark
	err := c.Get(ctx, t.key, &before)
	if err != nil && !apierrors.IsNotFound(err) {
		return t, err
	}
	existed := err == nil
	if err := o.applyObject(e, info); err != nil {
		return t, err
	}
	if err := c.Get(ctx, t.key, &after); err != nil {
		return t, err
	}
	idle := existed && (before.Spec.Suspend || stateOf(&before, "").ended)
	switch {
	case idle && plan.Hash(&before.Spec) == plan.Hash(&after.Spec):
		if execution := before.Status.Execution; execution != nil {
			t.stale = execution.ID
		}
		return t, rerun(ctx, e, c, &after)
	case after.Spec.Suspend:
		return t, resume(ctx, e, c, &after)
	}
	return t, nil
}

// follow shows the progress of benchmarks until all of them have ended, and returns
// them as they are then.
func (o *runOptions) follow(ctx context.Context, e *env, c *cluster, targets []target) ([]*v1alpha1.DBBenchmark, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.timeout > 0 {
		watching, cancel = context.WithTimeout(watching, o.timeout)
		defer cancel()
	}
	updates := make(chan news)
	var names []string
	for i, t := range targets {
		names = append(names, t.key.String())
		go func() {
			err := watchUntilEnd(watching, c, t, func(b *v1alpha1.DBBenchmark) {
				select {
				case updates <- news{index: i, benchmark: b}:
				case <-watching.Done():
				}
			})
			select {
			case updates <- news{index: i, err: err, done: true}:
			case <-watching.Done():
			}
		}()
	}
	show := newProgress(e.ErrOut, e.width, names)
	latest := make([]*v1alpha1.DBBenchmark, len(targets))
	for open := len(targets); open > 0; {
		select {
		case <-watching.Done():
			return nil, left(ctx, e.ErrOut, o.timeout)
		case u := <-updates:
			switch {
			case u.err != nil && watching.Err() == nil:
				return nil, fmt.Errorf("%s: %w", targets[u.index].key.Name, u.err)
			case u.done:
				open--
			default:
				latest[u.index] = u.benchmark
				show.show(names[u.index], stateOf(u.benchmark, targets[u.index].stale))
			}
		}
	}
	return latest, nil
}

// news is what was seen of a benchmark that is followed.
type news struct {
	index     int
	benchmark *v1alpha1.DBBenchmark
	err       error
	done      bool
}

// left says what becomes of benchmarks that are not followed any more.
func left(ctx context.Context, w io.Writer, timeout time.Duration) error {
	if ctx.Err() != nil {
		fmt.Fprintln(w, "The benchmarks go on in the cluster. kubectl dbbench run follows them again, cancel ends them.")
		return exit{exitInterrupted, errSilent}
	}
	return fmt.Errorf("the benchmarks have not ended within %s; they go on in the cluster", timeout)
}

// conclude prints what benchmarks have found, writes the report where one is asked for,
// and gives the verdict on all of them.
func conclude(e *env, o *runOptions, all []result) error {
	var verdicts []error
	worst := exit{}
	for i, r := range all {
		if i > 0 && (o.output == formatTable || o.output == formatWide) {
			fmt.Fprintln(e.Out)
		}
		if err := r.write(e.Out, o.output); err != nil {
			return err
		}
		if o.report != "" {
			files, err := r.build()
			if err != nil {
				return err
			}
			if err := e.writeFile(o.report, files.HTML); err != nil {
				return err
			}
		}
		err := verdict(r.benchmark)
		var x exit
		if errors.As(err, &x) && (worst.code == 0 || x.code < worst.code) {
			worst.code = x.code
		}
		verdicts = append(verdicts, err)
	}
	if worst.code == 0 {
		return nil
	}
	worst.error = errors.Join(verdicts...)
	return worst
}
