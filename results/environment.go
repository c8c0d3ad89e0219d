package results

import (
	"maps"
	"slices"

	"dbbench.dev/operator/runner/contract"
)

// TargetEnvironment is what a target was measured on, as its latest run tells.
type TargetEnvironment struct {
	Target        string `json:"target"`
	ServerFlavor  string `json:"serverFlavor"`
	ServerVersion string `json:"serverVersion"`
	// VariablesSHA256 is the digest of all variables that do not name a server: equal for
	// servers of equal configuration.
	VariablesSHA256 string            `json:"variablesSHA256,omitempty"`
	Variables       map[string]string `json:"variables,omitempty"`
	// StatusDeltas are the server's counters over the measured part of that run.
	StatusDeltas map[string]int64 `json:"statusDeltas,omitempty"`
	// Runners are the load generators of that run, by replica.
	Runners []contract.RunnerUsage `json:"runners,omitempty"`
	// Kubernetes is the version of the cluster of that run.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Changed tells that the variables were others in an earlier run of the execution.
	Changed bool `json:"changed,omitempty"`
}

// Environments are those of the targets, of those that have a run with a record.
func Environments(runs []Envelope, targets []string) []TargetEnvironment {
	var all []TargetEnvironment
	for _, target := range targets {
		var of []Envelope
		for _, r := range runs {
			if r.Target == target && r.Failure == nil && len(r.Records) > 0 {
				of = append(of, r)
			}
		}
		if len(of) > 0 {
			all = append(all, environment(target, of))
		}
	}
	return all
}

func environment(target string, runs []Envelope) TargetEnvironment {
	last := slices.MaxFunc(runs, func(a, b Envelope) int { return a.Finished.Compare(b.Finished) })
	server := serverOf(last)
	e := TargetEnvironment{
		Target: target, ServerFlavor: server.ServerFlavor, ServerVersion: server.ServerVersion,
		VariablesSHA256: server.ServerVariablesSHA256, Variables: server.ServerVariables, StatusDeltas: server.StatusDeltas,
		Kubernetes: last.Kubernetes,
	}
	for _, r := range last.Records {
		e.Runners = append(e.Runners, r.Environment.Runner)
	}
	for _, r := range runs {
		s := serverOf(r)
		e.Changed = e.Changed || s.ServerVersion != server.ServerVersion || s.ServerVariablesSHA256 != server.ServerVariablesSHA256
	}
	return e
}

// serverOf is the environment of the replica that looked at the server's variables:
// the first.
func serverOf(run Envelope) contract.Environment {
	for _, r := range run.Records {
		if r.Start.Replica == 0 {
			return r.Environment
		}
	}
	return run.Records[0].Environment
}

// VariableDifference is a variable that is not the same on all targets.
type VariableDifference struct {
	Name string `json:"name"`
	// Values are by target; a target that does not have the variable is missing.
	Values map[string]string `json:"values"`
}

// Differences lists the variables that differ between targets, by name.
func Differences(environments []TargetEnvironment) []VariableDifference {
	names := map[string]bool{}
	for _, e := range environments {
		for name := range e.Variables {
			names[name] = true
		}
	}
	var all []VariableDifference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := VariableDifference{Name: name, Values: map[string]string{}}
		same := true
		for _, e := range environments {
			value, has := e.Variables[name]
			if has {
				d.Values[e.Target] = value
			}
			same = same && has && value == environments[0].Variables[name]
		}
		if !same {
			all = append(all, d)
		}
	}
	return all
}
