package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const project = "dbbench.dev/operator"

// arrows are imports and whether the layout allows them: the other way about, or a
// package's own client, it must not.
var arrows = []struct {
	from, to string
	allowed  bool
}{
	{"api/v1alpha1", "k8s.io/api/core/v1", true},
	{"api/v1alpha1", "k8s.io/client-go/kubernetes", false},
	{"api/v1alpha1", project + "/runner/contract", false},
	{"runner/contract", "encoding/json", true},
	{"runner/contract", "k8s.io/api/core/v1", false},
	{"runner/contract", project + "/runner/measure", false},
	{"runner/engine", project + "/runner/measure", true},
	{"runner/engine", "k8s.io/client-go/kubernetes", false},
	{"runner/engine", "sigs.k8s.io/controller-runtime", false},
	{"runner/engine", project + "/api/v1alpha1", false},
	{"runner/engine", project + "/controllers/plan", false},
	{"runner/engine", project + "/results", false},
	{"runner/workload", project + "/runner/contract", true},
	{"runner/workload", "database/sql", false},
	{"runner/workload", project + "/runner/engine", false},
	{"runner/rendezvous", project + "/runner/contract", true},
	{"runner/rendezvous", project + "/runner/mysql", false},
	{"cmd/runner", project + "/runner/engine", true},
	{"cmd/runner", project + "/controllers", false},
	{"cmd/runner", "k8s.io/client-go/kubernetes", false},
	{"cmd/manager", project + "/controllers", true},
	{"cmd/manager", project + "/runner/engine", false},
	{"cmd/kubectl-dbbench", project + "/controllers/plan", true},
	{"cmd/kubectl-dbbench", project + "/runner", true},
	{"cmd/kubectl-dbbench", project + "/controllers", false},
	{"controllers", "sigs.k8s.io/controller-runtime", true},
	{"controllers", project + "/runner/contract", true},
	{"controllers", project + "/runner/measure", false},
	{"controllers/plan", project + "/runner/contract", true},
	{"controllers/plan", "k8s.io/client-go/kubernetes", false},
	{"controllers/plan", "sigs.k8s.io/controller-runtime", false},
	{"controllers/plan", "net/http", false},
	{"controllers/resources", project + "/controllers/plan", true},
	{"controllers/resources", "sigs.k8s.io/controller-runtime", false},
	{"controllers/resources", project + "/runner/mysql", false},
	{"results", project + "/api/v1alpha1", true},
	{"results", project + "/runner/contract", true},
	{"results", project + "/controllers/plan", false},
	{"results", "k8s.io/client-go/kubernetes", false},
	{"results/report", project + "/results", true},
	{"results/report", project + "/controllers/plan", false},
	{"results/report", "net/http", false},
}

// checkLayout lets the linter judge a module that holds each of the arrows and
// nothing else: it must refuse those that are not allowed, and no other.
func checkLayout(ctx context.Context, linter, config string) error {
	linter, err := filepath.Abs(linter)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeModule(dir, config); err != nil {
		return err
	}
	refused, err := lint(ctx, linter, dir)
	if err != nil {
		return err
	}
	var faults []error
	for i, a := range arrows {
		switch {
		case a.allowed && refused[arrowFile(i)]:
			faults = append(faults, fmt.Errorf("the linter refuses that %s imports %s", a.from, a.to))
		case !a.allowed && !refused[arrowFile(i)]:
			faults = append(faults, fmt.Errorf("the linter lets %s import %s", a.from, a.to))
		}
	}
	return errors.Join(faults...)
}

func arrowFile(i int) string { return filepath.Join(arrows[i].from, fmt.Sprintf("arrow%d.go", i)) }

// writeModule writes a file for each arrow, and the linter's configuration. Vendored
// empty packages stand for the libraries, so that nothing is fetched.
func writeModule(dir, config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	files := map[string]string{
		".golangci.yml":      string(text),
		"go.mod":             "module " + project + "\n\ngo 1.26\n",
		"vendor/modules.txt": "",
	}
	for i, a := range arrows {
		files[arrowFile(i)] = fmt.Sprintf("package %s\n\nimport _ %q\n", packageOf(a.from), a.to)
		if own, ok := strings.CutPrefix(a.to, project+"/"); ok {
			files[filepath.Join(own, "package.go")] = "package " + packageOf(own) + "\n"
		} else if strings.Contains(a.to, ".") {
			files[filepath.Join("vendor", a.to, "package.go")] = "package stand_in\n"
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// packageOf is a name for the package in a folder.
func packageOf(dir string) string { return strings.ReplaceAll(filepath.Base(dir), "-", "_") }

// lint returns the files whose imports the linter refuses.
func lint(ctx context.Context, linter, dir string) (map[string]bool, error) {
	cmd := exec.CommandContext(ctx, linter, "run", "--enable-only=depguard", "--issues-exit-code=0",
		"--output.json.path=stdout", "--output.text.path=/dev/null", "--show-stats=false", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("run make lint first: %w", err)
	}
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct{ Filename string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("the linter's report: %w", err)
	}
	refused := map[string]bool{}
	for _, issue := range report.Issues {
		if issue.FromLinter == "depguard" {
			refused[issue.Pos.Filename] = true
		}
	}
	if len(refused) == 0 {
		var texts []string
		for _, issue := range report.Issues {
			texts = append(texts, issue.Text)
		}
		return nil, fmt.Errorf("the linter refuses nothing: %s", strings.Join(slices.Compact(texts), "; "))
	}
	return refused, nil
}
