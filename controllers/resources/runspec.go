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

// progressInterval is the time between two lines of progress in a runner's log.
const progressInterval = 2 * time.Second

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
		Prepare:          contract.Prepare(plan.PrepareMode(&b.Spec)),
		Cleanup:          runCleanup(&b.Spec),
		Replicas:         max(b.Spec.Runner.Replicas, 1),
		Timeout:          contract.Duration(plan.RunTimeout(&b.Spec)),
		ProgressInterval: contract.Duration(progressInterval),
	}
	if spec.Replicas > 1 {
		spec.Rendezvous = &contract.Rendezvous{
			Host: fmt.Sprintf("%s-0.%s.%s.svc", RunJobName(b, execution, run), ServiceName(b), b.Namespace),
			Port: contract.RendezvousPort, JoinTimeout: contract.Duration(plan.JoinTimeout(&b.Spec)),
		}
	}
	// The two halves of a spec that workloads are about have the same JSON on both
	// sides, so that no field can be forgotten here.
	if err := convertWorkload(run.Workload, &spec.Workload); err != nil {
		return nil, fmt.Errorf("spec.workload: %w", err)
	}
	if err := convert(run.Load, &spec.Load); err != nil {
		return nil, fmt.Errorf("spec.load: %w", err)
	}
	return spec, nil
}

// runCleanup is what a run itself does about its data: that of several runs is not one
// run's to drop.
func runCleanup(spec *v1alpha1.DBBenchmarkSpec) contract.Cleanup {
	switch {
	case plan.PrepareMode(spec) != v1alpha1.PreparePerRun:
		return contract.CleanupNever
	case spec.Cleanup == "":
		return contract.CleanupAlways
	}
	return contract.Cleanup(spec.Cleanup)
}

// convertWorkload puts the path of a mounted file in the place of the ConfigMap's key,
// which is the one field that only one side has.
func convertWorkload(from v1alpha1.Workload, to *contract.Workload) error {
	if from.SQL == nil || from.SQL.ConfigMapKeyRef == nil {
		return convert(from, to)
	}
	sql := *from.SQL
	sql.ConfigMapKeyRef = nil
	from.SQL = &sql
	if err := convert(from, to); err != nil {
		return err
	}
	to.SQL.StatementsFile = contract.StatementsPath
	return nil
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
	host, port := plan.Address(namespace, t)
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
