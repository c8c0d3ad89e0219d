// Command sandbox runs a real Kubernetes on one Linux machine, made of registry
// packages alone: control plane, kubelet, containerd, kube-proxy and CoreDNS. All it
// makes lies below two folders and is gone after down.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	paths, err := defaultPaths()
	if err != nil {
		return err
	}
	s := &sandbox{paths: paths, out: stderr}
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "A real single-node Kubernetes from registry packages",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var purge bool
	down := &cobra.Command{
		Use: "down", Short: "Stop everything and remove all but the cache", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return s.down(ctx, purge) },
	}
	down.Flags().BoolVar(&purge, "purge", false, "remove the cache of builds and images too")
	root.AddCommand(
		down,
		&cobra.Command{
			Use: "up", Short: "Start the cluster, or heal it", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return s.up(ctx) },
		},
		&cobra.Command{
			Use: "build", Short: "Build the Kubernetes binary into the cache", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return s.build(ctx) },
		},
		&cobra.Command{
			Use: "status", Short: "Show components, node and pods", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return s.status(ctx, stdout) },
		},
		&cobra.Command{
			Use: "env", Short: "Print where things are, as KEY=VALUE lines", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return s.printEnv(stdout) },
		},
		&cobra.Command{
			Use: "load-image FILE…", Short: "Import image tarballs", Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, files []string) error { return s.loadImages(ctx, files) },
		},
		&cobra.Command{
			Use: "server-image NAME…", Short: "Build and load images of database servers: " + serverNames(), Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, names []string) error { return s.serverImages(ctx, names) },
		},
	)
	return root.Execute()
}

// sandbox is what the commands work on.
type sandbox struct {
	paths
	out io.Writer // progress
}

func (s *sandbox) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *sandbox) printEnv(w io.Writer) error {
	bin, err := s.binDir()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "KUBECONFIG=%s\nKUBECTL=%s/kubectl\nKUBEBUILDER_ASSETS=%s\nMARIADB_IMAGE=%s\n",
		s.kubeconfig(), bin, bin, serverImages["mariadb-10.11"].tag)
	return err
}
