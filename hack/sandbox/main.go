// Command sandbox runs a real Kubernetes on one Linux machine, made of registry
// packages alone: control plane, kubelet, containerd, kube-proxy and CoreDNS. All it
// makes lies below two folders and is gone after down.
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
	"time"

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
	needRoot := func(*cobra.Command, []string) error { return checkMachine() }
	var purge bool
	down := &cobra.Command{
		Use: "down", Short: "Stop everything and remove all but the cache", Args: cobra.NoArgs,
		PreRunE: needRoot,
		RunE: func(*cobra.Command, []string) error {
			return s.alone(ctx, func(ctx context.Context) error { return s.down(ctx, purge) })
		},
	}
	down.Flags().BoolVar(&purge, "purge", false, "remove the cache of builds and images too")
	root.AddCommand(
		down,
		&cobra.Command{
			Use: "up", Short: "Start the cluster, or heal it", Args: cobra.NoArgs,
			PreRunE: needRoot,
			RunE:    func(*cobra.Command, []string) error { return s.alone(ctx, s.up) },
		},
		&cobra.Command{
			Use: "build", Short: "Build the Kubernetes binary into the cache", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return s.alone(ctx, s.build) },
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
			RunE: func(_ *cobra.Command, names []string) error {
				return s.alone(ctx, func(ctx context.Context) error { return s.serverImages(ctx, names) })
			},
		},
		&cobra.Command{
			Use: "server-root NAME…", Short: "Unpack database servers for tests that run them without a container: " + serverNames(), Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, names []string) error {
				return s.alone(ctx, func(ctx context.Context) error { return s.serverRoots(ctx, names) })
			},
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
	_, err := fmt.Fprintf(w, "KUBECONFIG=%s\nKUBECTL=%s\nKUBEBUILDER_ASSETS=%s\nMARIADB_IMAGE=%s\n",
		s.kubeconfig(), s.bin("kubectl"), s.bin(""), serverImages[defaultServer].tag)
	return err
}

// alone runs a command while no other one of the sandbox runs.
func (s *sandbox) alone(ctx context.Context, command func(context.Context) error) error {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(s.cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	for said := false; ; said = true {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return command(ctx)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
		if !said {
			s.say("waiting for another sandbox command")
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
