package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

const (
	defaultTimeout   = time.Hour
	progressInterval = 2 * time.Second
)

// RunSpec is what the runner is told of a run.
func RunSpec(b *v1alpha1.DBBenchmark, execution string, run plan.Run) (*contract.RunSpec, error) {
	target, err := findTarget(b, run.Target)
	if err != nil {
		return nil, err
	}
	spec := &contract.RunSpec{
		Version: contract.RunSpecVersion,
		Run: contract.Run{
			ID: run.ID, Namespace: b.Namespace, Benchmark: b.Name, BenchmarkUID: string(b.UID),
			Execution: execution, Point: run.Point, Iteration: run.Iteration,
		},
		Target:           runTarget(b.Namespace, target),
		Prepare:          contract.PreparePerRun,
		Cleanup:          contract.Cleanup(b.Spec.Cleanup),
		Replicas:         max(b.Spec.Runner.Replicas, 1),
		Timeout:          contract.Duration(Timeout(b)),
		ProgressInterval: contract.Duration(progressInterval),
	}
	if b.Spec.Prepare != "" {
		spec.Prepare = contract.Prepare(b.Spec.Prepare)
	}
	if spec.Cleanup == "" {
		spec.Cleanup = contract.CleanupAlways
	}
	// The two halves of a spec that workloads are about have the same JSON on both
	// sides, so that no field can be forgotten here.
	if err := convert(run.Workload, &spec.Workload); err != nil {
		return nil, fmt.Errorf("spec.workload: %w", err)
	}
	if err := convert(run.Load, &spec.Load); err != nil {
		return nil, fmt.Errorf("spec.load: %w", err)
	}
	return spec, nil
}

// Timeout is the time that a run may take.
func Timeout(b *v1alpha1.DBBenchmark) time.Duration {
	if b.Spec.RunTimeout == nil {
		return defaultTimeout
	}
	return b.Spec.RunTimeout.Duration
}

func findTarget(b *v1alpha1.DBBenchmark, name string) (v1alpha1.Target, error) {
	for _, t := range b.Spec.Targets {
		if t.Name == name {
			return t, nil
		}
	}
	return v1alpha1.Target{}, fmt.Errorf("the spec has no target %q", name)
}

func runTarget(namespace string, t v1alpha1.Target) contract.Target {
	host, port := Address(namespace, t)
	target := contract.Target{
		Name: t.Name, Host: host, Port: port,
		Database: t.Database, AllowExistingDatabase: t.AllowExistingDatabase,
		UsernameFile: path.Join(contract.CredentialsDir, contract.UsernameFile),
		PasswordFile: path.Join(contract.CredentialsDir, contract.PasswordFile),
		TLS:          contract.TLS{Mode: contract.TLSMode(t.TLS.Mode), ServerName: t.TLS.ServerName},
	}
	if target.TLS.Mode == "" {
		target.TLS.Mode = contract.TLSPreferred
	}
	if t.TLS.CASecretRef != nil {
		target.TLS.CAFile = path.Join(contract.TLSDir, contract.CAFile)
	}
	if t.TLS.ClientSecretRef != nil {
		target.TLS.CertFile = path.Join(contract.TLSDir, contract.ClientCertFile)
		target.TLS.KeyFile = path.Join(contract.TLSDir, contract.ClientKeyFile)
	}
	if len(t.SessionVariables) > 0 {
		target.SessionVariables = map[string]string{}
		for name, value := range t.SessionVariables {
			target.SessionVariables[name] = string(value)
		}
	}
	return target
}

// convert carries a value over by its JSON, and refuses what the other side does not
// know.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
