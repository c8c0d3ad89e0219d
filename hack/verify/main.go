// Command verify checks what neither the compiler nor a test sees: that generated
// files, formatting and module files are up to date, and that the linter guards the
// layout. It changes generated files to what they should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// generated are the paths that `make generate manifests` writes below.
var generated = []string{"api", "charts", "config", "docs"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(stderr)
	linter := flags.String("golangci-lint", "bin/golangci-lint", "path of golangci-lint")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var faults []error
	for _, check := range []struct {
		name string
		run  func() error
	}{
		{"generated files", func() error { return checkGenerated(ctx) }},
		{"format", func() error { return checkFormat(ctx) }},
		{"modules", func() error { return checkModules(ctx) }},
		{"layout", func() error { return checkLayout(ctx, *linter, ".golangci.yml") }},
	} {
		err := check.run()
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", check.name, err))
			fmt.Fprintln(stdout, check.name, "FAIL")
			continue
		}
		fmt.Fprintln(stdout, check.name, "ok")
	}
	return errors.Join(faults...)
}

// checkGenerated compares the folders of generated files before and after, so that it
// works on a checkout with changes of its own, and sees new files too.
func checkGenerated(ctx context.Context) error {
	before, err := digests(generated)
	if err != nil {
		return err
	}
	if _, err := command(ctx, ".", "make", "generate", "manifests"); err != nil {
		return err
	}
	after, err := digests(generated)
	if err != nil {
		return err
	}
	if changed := difference(before, after); len(changed) > 0 {
		return fmt.Errorf("not up to date, and now they are; commit them: %s", strings.Join(changed, " "))
	}
	return nil
}

func checkFormat(ctx context.Context) error {
	files, err := command(ctx, ".", "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	if err != nil {
		return err
	}
	badly, err := command(ctx, ".", "gofmt", append([]string{"-l"}, strings.Fields(files)...)...)
	if err != nil {
		return err
	}
	if badly != "" {
		return fmt.Errorf("run make fmt, for %s", strings.Join(strings.Fields(badly), " "))
	}
	return nil
}

// checkModules leaves out the sandbox's module: to tidy it means to fetch what all of
// Kubernetes is tested with.
func checkModules(ctx context.Context) error {
	for _, dir := range []string{".", "hack/image", "hack/install"} {
		if _, err := command(ctx, dir, "go", "mod", "tidy", "-diff"); err != nil {
			return fmt.Errorf("run go mod tidy in %s: %w", dir, err)
		}
	}
	return nil
}

// command runs a program and returns what it wrote to standard output.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), fmt.Errorf("%s: %w\n%s", name, err, exit.Stderr)
	}
	return string(out), err
}
