package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
)

// The field managers by which the plugin writes. A suspension has one of its own, so
// that to lift it is to own nothing any more.
const (
	fieldManager   = "kubectl-dbbench"
	suspendManager = "kubectl-dbbench-cancel"
)

// env is what the commands share.
type env struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	now    func() time.Time
}

func newEnv(streams genericiooptions.IOStreams) *env {
	config := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams)
	return &env{IOStreams: streams, config: config, now: time.Now}
}

// cluster is a client, and the namespace that the command line is about.
type cluster struct {
	client.WithWatch
	namespace string
}

func (e *env) connect() (*cluster, error) {
	namespace, _, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config, err := e.config.ToRESTConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, fmt.Errorf("%w: set KUBECONFIG or --kubeconfig, or use run --local, which needs no cluster", err)
		}
		return nil, err
	}
	mapper, err := e.config.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &cluster{c, namespace}, nil
}

// standardWidth is that of a terminal that does not say.
const standardWidth = 80

// width is the width of the terminal that standard error is, 0 where it is none.
func (e *env) width() int {
	f, ok := e.ErrOut.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return standardWidth
}

// completeNames completes the names of benchmarks, for the first so many arguments.
func (e *env) completeNames(arguments int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= arguments {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.names(cmd, v1alpha1.GroupVersion.WithKind("DBBenchmarkList"))
	}
}

// completeExecutions completes the names of benchmarks and, after @, their executions,
// for the first so many arguments.
func (e *env) completeExecutions(arguments int) cobra.CompletionFunc {
	names := e.completeNames(arguments)
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		name, _, ok := strings.Cut(text, "@")
		if !ok || len(args) >= arguments {
			return names(cmd, args, text)
		}
		c, err := e.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		b := &v1alpha1.DBBenchmark{}
		if err := c.Get(cmd.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, b); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		all := []cobra.Completion{name + "@" + previous}
		for _, id := range executions(b) {
			all = append(all, name+"@"+id)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// names lists the names of a kind of object, in the namespace where it is in one.
func (e *env) names(cmd *cobra.Command, list schema.GroupVersionKind) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := e.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(list)
	if err := c.List(cmd.Context(), found, client.InNamespace(c.namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, o := range found.Items {
		names = append(names, o.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFlags completes the values of kubectl's own flags.
func (e *env) completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return e.names(cmd, corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	})
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		raw, err := e.config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the plugin's version",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Out, "kubectl-dbbench", version())
			return err
		},
	}
}

// version is that of the build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
