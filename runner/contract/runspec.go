// Package contract is the only language that the controller and the runner
// share: the document that describes one run (RunSpec) and the one that reports
// it (Record). Both are versioned JSON and decoded strictly. The package imports
// the standard library alone, so that either side can be built without the other.
package contract

import (
	"encoding/json"
	"fmt"
	"time"
)

// RunSpecVersion names the revision of RunSpec that this build writes and reads.
const RunSpecVersion = "dbbench.dev/run/v1"

// Where a runner pod finds what the controller mounts into it.
const (
	RunSpecPath     = "/etc/dbbench/run/spec.json"
	CredentialsDir  = "/etc/dbbench/credentials"
	TLSDir          = "/etc/dbbench/tls"
	UsernameFile    = "username"
	PasswordFile    = "password"
	CAFile          = "ca.crt"
	ClientCertFile  = "tls.crt"
	ClientKeyFile   = "tls.key"
	TerminationPath = "/dev/termination-log"
	// NodeNameEnv is the environment variable with the name of the pod's node
	// (fieldRef spec.nodeName, which a downwardAPI volume does not offer). It may be unset.
	NodeNameEnv = "DBBENCH_NODE_NAME"
	// ReplicaEnv is the environment variable with the pod's index among the replicas of
	// its run, which an Indexed Job sets by itself; unset is 0.
	ReplicaEnv = "JOB_COMPLETION_INDEX"
	// RendezvousPort is the port on which replica 0 usually waits for the others.
	RendezvousPort = 7332
)

// RunSpec describes one run: one target, one point of the sweep, one iteration.
// It never holds a secret; credentials are files, named by their paths.
type RunSpec struct {
	Version string `json:"version"`
	Run     Run    `json:"run"`
	Target  Target `json:"target"`

	Workload Workload `json:"workload"`
	Load     Load     `json:"load"`

	// Prepare says when the data is loaded; Cleanup whether it stays afterwards.
	Prepare Prepare `json:"prepare"`
	Cleanup Cleanup `json:"cleanup"`

	// Replicas is the number of runner pods that share the run's clients, 1 or more. All
	// of them get the same RunSpec.
	Replicas int32 `json:"replicas"`
	// Rendezvous is where the replicas meet. Where Replicas is above 1
	// the runner refuses to run without it.
	Rendezvous *Rendezvous `json:"rendezvous,omitempty"`
	// Timeout bounds the whole run, from the runner's start to its last line.
	Timeout Duration `json:"timeout"`
	// ProgressInterval is the time between two progress lines.
	ProgressInterval Duration `json:"progressInterval"`
}

// Rendezvous is where the replicas of a run meet. Replica 0 serves HTTP there, the
// others call it: they start together, stop together when one of them fails, and
// replica 0 checks and drops the data when all are done.
type Rendezvous struct {
	// Host is the DNS name or address of replica 0's pod, such as
	// <job>-0.<service>.<namespace>.svc. That it does not resolve at first is no error.
	Host string `json:"host"`
	// Port is the TCP port, on all addresses of replica 0's pod.
	Port int32 `json:"port"`
	// JoinTimeout is how long a replica waits for the others at each meeting: after its
	// start for all to have come, and after its clients have connected for all to have
	// done so. Image pulls and scheduling have to fit in. Loading the data does not
	// count, nor does the load itself.
	JoinTimeout Duration `json:"joinTimeout"`
}

// Run identifies a run. ID is unique within an execution and stable: the same
// spec always gives the same IDs.
type Run struct {
	ID           string `json:"id"`
	Namespace    string `json:"namespace"`
	Benchmark    string `json:"benchmark"`
	BenchmarkUID string `json:"benchmarkUID"`
	Execution    string `json:"execution"`
	Point        string `json:"point"`
	Iteration    int32  `json:"iteration"`
}

// Target is the server that the run measures.
type Target struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"`
	// Socket is the path of a unix socket, for runs outside a cluster; it excludes Host.
	Socket                string            `json:"socket,omitempty"`
	Database              string            `json:"database"`
	AllowExistingDatabase bool              `json:"allowExistingDatabase,omitempty"`
	UsernameFile          string            `json:"usernameFile"`
	PasswordFile          string            `json:"passwordFile"`
	TLS                   TLS               `json:"tls"`
	SessionVariables      map[string]string `json:"sessionVariables,omitempty"`
}

// TLSMode is how far a connection is protected, as in MySQL's --ssl-mode.
type TLSMode string

// The TLS modes.
const (
	TLSDisabled       TLSMode = "Disabled"
	TLSPreferred      TLSMode = "Preferred"
	TLSRequired       TLSMode = "Required"
	TLSVerifyCA       TLSMode = "VerifyCA"
	TLSVerifyIdentity TLSMode = "VerifyIdentity"
)

// TLS configures the connections' transport. Paths are empty where not given.
type TLS struct {
	Mode       TLSMode `json:"mode"`
	CAFile     string  `json:"caFile,omitempty"`
	CertFile   string  `json:"certFile,omitempty"`
	KeyFile    string  `json:"keyFile,omitempty"`
	ServerName string  `json:"serverName,omitempty"`
}

// Prepare says when a workload's data is loaded.
type Prepare string

// The prepare modes.
const (
	PreparePerRun     Prepare = "PerRun"
	PreparePerDataset Prepare = "PerDataset"
	PrepareNever      Prepare = "Never"
)

// Cleanup says when a workload's data is dropped.
type Cleanup string

// The cleanup modes.
const (
	CleanupAlways    Cleanup = "Always"
	CleanupOnSuccess Cleanup = "OnSuccess"
	CleanupNever     Cleanup = "Never"
)

// Load says how much is asked of the server, and for how long. Of several stop
// rules the first that is met ends the measured part.
type Load struct {
	// Clients is the number of connections over all replicas.
	Clients int32 `json:"clients"`
	// EventsPerClient and Events count events; 0 is no limit.
	EventsPerClient int64 `json:"eventsPerClient,omitempty"`
	Events          int64 `json:"events,omitempty"`
	// Duration and Warmup are times; 0 is no limit and no warm-up.
	Duration Duration `json:"duration,omitzero"`
	Warmup   Duration `json:"warmup,omitzero"`
	// Rate is arrivals per second over all replicas (open loop); 0 is closed loop.
	Rate int64 `json:"rate,omitempty"`
	// Arrivals is how an open loop spaces its events; empty is Poisson.
	Arrivals string `json:"arrivals,omitempty"`
	// Think is a pause of each client between two events of a closed loop.
	Think Duration `json:"thinkTime,omitzero"`
	// Ramp are steps that follow each other from the start of the measured part; the first
	// holds in the warm-up, too. After them Clients and Rate hold.
	Ramp []RampStep `json:"ramp,omitempty"`
}

// The arrival processes.
const (
	ArrivalsPoisson = "Poisson"
	ArrivalsUniform = "Uniform"
)

// RampStep is a stretch of a ramp. It sets Clients, those that are active, or in an open
// loop Rate.
type RampStep struct {
	For     Duration `json:"for"`
	Clients int32    `json:"clients,omitempty"`
	Rate    int64    `json:"rate,omitempty"`
}

// Duration is a time.Duration that JSON spells as Go does ("1m30s").
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads a string that time.ParseDuration takes.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string such as \"10s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// IsZero lets omitzero leave the field out.
func (d Duration) IsZero() bool { return d == 0 }
