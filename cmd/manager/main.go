// Command manager runs the controller of DBBenchmarks in a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	metricsAddress string
	probeAddress   string
	leaderElect    bool
	namespace      string
	runnerImage    string
	zap            zap.Options
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "where metrics are served over HTTPS to clients that the API server lets in; 0 is nowhere")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "act only while holding the lease, so that several managers can stand by")
	flags.StringVar(&o.namespace, "namespace", "", "the only namespace whose benchmarks are run; empty is all")
	flags.StringVar(&o.runnerImage, "runner-image", "", "the image of runner pods (required); it holds /runner")
	o.zap.BindFlags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.runnerImage == "" {
		return o, errors.New("--runner-image must be set: it is the image that this manager is in")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.zap), zap.WriteTo(stderr)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := addReconciler(ctx, mgr, config, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(o.namespace),
		Metrics: metricsserver.Options{
			BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress: o.probeAddress,
		LeaderElection:         o.leaderElect,
		LeaderElectionID:       "manager.dbbench.dev",
		// The process ends when the manager does, so the next one need not wait.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

func addReconciler(ctx context.Context, mgr ctrl.Manager, config *rest.Config, o options) error {
	clientset, err := kubernetes.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	version, err := clientset.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("the version of the cluster: %w", err)
	}
	r := &controllers.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Logs: controllers.PodLogs{Clientset: clientset},
		Events: mgr.GetEventRecorder("dbbench-manager"), Image: o.runnerImage,
		Kubernetes: version.GitVersion, Namespace: o.namespace, Now: time.Now,
	}
	return r.SetupWithManager(ctx, mgr)
}
