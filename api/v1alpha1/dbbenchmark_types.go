package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DBBenchmark measures MySQL or MariaDB servers with one workload over a sweep of
// parameters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dbb,categories=dbbench
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Runs",type=string,JSONPath=`.status.execution.progress`
// +kubebuilder:printcolumn:name="Passed",type=string,JSONPath=`.status.conditions[?(@.type=="Passed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Target",type=string,priority=1,JSONPath=`.spec.targets[*].name`
// +kubebuilder:printcolumn:name="Workload",type=string,priority=1,JSONPath=`.status.workload`
// +kubebuilder:printcolumn:name="Throughput",type=string,priority=1,JSONPath=`.status.latest.eventsPerSecond`
// +kubebuilder:printcolumn:name="P99",type=string,priority=1,JSONPath=`.status.latest.p99`
type DBBenchmark struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to measure, and how.
	// +required
	Spec DBBenchmarkSpec `json:"spec"`
	// status is what was found.
	// +optional
	Status DBBenchmarkStatus `json:"status,omitempty"`
}

// DBBenchmarkList is a list of DBBenchmarks.
//
// +kubebuilder:object:root=true
type DBBenchmarkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DBBenchmark `json:"items"`
}

// Duration is a time span such as "90s", "1h30m" or "250ms".
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
type Duration = metav1.Duration

// DBBenchmarkSpec is what to measure, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || !has(self.sweep.axes) || self.sweep.axes.all(a, self.sweep.axes.exists_one(b, b.path == a.path))",message="sweep.axes: a path may stand in one axis only"
// +kubebuilder:validation:XValidation:rule="self.load.clients >= self.runner.replicas || has(self.sweep) && has(self.sweep.axes) && self.sweep.axes.exists(a, a.path == 'load.clients')",message="load.clients must be at least runner.replicas: every runner pod needs a client"
// +kubebuilder:validation:XValidation:rule="!has(self.thresholds) || self.thresholds.all(t, !has(t.to) || t.to == 'Baseline' || self.targets.exists(x, x.name == t.to))",message="thresholds: to must be Baseline or the name of a target"
// +kubebuilder:validation:XValidation:rule="!has(self.thresholds) || self.thresholds.all(t, !has(t.to) || t.to != 'Baseline' || has(self.baseline))",message="thresholds: to: Baseline needs spec.baseline"
type DBBenchmarkSpec struct {
	// targets are the servers to measure, 1 to 8. With more than one, each is
	// compared with the first.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Targets []Target `json:"targets"`

	// workload is what the clients do. Exactly one member is set.
	// +required
	Workload Workload `json:"workload"`

	// load is how much is asked of the server, and for how long.
	// +optional
	// +kubebuilder:default={}
	Load Load `json:"load,omitzero"`

	// sweep varies fields of workload and load. Without it there is one point.
	// +optional
	Sweep *Sweep `json:"sweep,omitempty"`

	// iterations is how often each point is repeated, 1 to 100. Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Iterations int32 `json:"iterations,omitempty"`

	// order is the order of the runs. RoundRobin (the default) visits every point
	// once before it repeats one, so that drift of the server hits all alike;
	// Sequential repeats a point before it goes to the next.
	// +optional
	// +kubebuilder:default=RoundRobin
	Order Order `json:"order,omitempty"`

	// prepare says when the data is loaded. The default is the workload's:
	// PerRun for slap, payload and sql, PerDataset for oltp and linkbench.
	// +optional
	Prepare Prepare `json:"prepare,omitempty"`

	// runner shapes the pods that generate the load.
	// +optional
	// +kubebuilder:default={}
	Runner Runner `json:"runner,omitzero"`

	// thresholds are what the results must meet for the condition Passed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Thresholds []Threshold `json:"thresholds,omitempty"`

	// baseline is the earlier result that this one is compared with.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`

	// maxSpreadPercent is the relative spread of a point's throughput over its
	// iterations, (maximum - minimum) / median, above which the point is called
	// unstable. Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxSpreadPercent *int32 `json:"maxSpreadPercent,omitempty"`

	// schedule starts an execution at the times of a cron expression.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`

	// suspend starts no further run while it is true; a run under way ends. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// runTimeout bounds one run, its preparation and clean-up included. Default 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="must be at least 10s"
	RunTimeout *Duration `json:"runTimeout,omitempty"`

	// retries is how often a run is repeated after a loss of infrastructure (a pod
	// evicted, a node gone). A measured failure is never repeated. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries int32 `json:"retries,omitempty"`

	// onFailure says what a failed run ends: Stop (the default) the execution,
	// Continue itself alone: the other runs are done, those of its point included.
	// +optional
	// +kubebuilder:default=Stop
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// cleanup says when the data in the target is dropped. Default Always.
	// +optional
	// +kubebuilder:default=Always
	Cleanup Cleanup `json:"cleanup,omitempty"`

	// historyLimit is the number of executions whose results are kept, the current
	// one included. Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// Order is the order of the runs.
// +kubebuilder:validation:Enum=RoundRobin;Sequential
type Order string

// The orders of runs.
const (
	OrderRoundRobin Order = "RoundRobin"
	OrderSequential Order = "Sequential"
)

// Prepare says when data is loaded.
// +kubebuilder:validation:Enum=PerRun;PerDataset;Never
type Prepare string

// The prepare modes.
const (
	// PreparePerRun loads the data anew for each run.
	PreparePerRun Prepare = "PerRun"
	// PreparePerDataset loads it once for all runs that share it.
	PreparePerDataset Prepare = "PerDataset"
	// PrepareNever expects it to be there, and checks it.
	PrepareNever Prepare = "Never"
)

// OnFailure says what a failed run ends.
// +kubebuilder:validation:Enum=Stop;Continue
type OnFailure string

// The reactions to a failed run.
const (
	OnFailureStop     OnFailure = "Stop"
	OnFailureContinue OnFailure = "Continue"
)

// Cleanup says when the data in the target is dropped.
// +kubebuilder:validation:Enum=Always;OnSuccess;Never
type Cleanup string

// The clean-up modes.
const (
	CleanupAlways    Cleanup = "Always"
	CleanupOnSuccess Cleanup = "OnSuccess"
	CleanupNever     Cleanup = "Never"
)

// Target is a database server.
//
// +kubebuilder:validation:XValidation:rule="has(self.host) != has(self.serviceRef)",message="exactly one of host and serviceRef must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceRef) || !has(self.port)",message="port goes with host; a serviceRef has a port of its own"
type Target struct {
	// name tells the targets of a benchmark apart.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// host is a DNS name or IP address as a pod of the benchmark's namespace sees it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:]([-A-Za-z0-9.:_]*[A-Za-z0-9.:])?$`
	Host string `json:"host,omitempty"`

	// port is the TCP port of host. Default 3306.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// serviceRef is a Service of the benchmark's namespace, instead of host.
	// +optional
	ServiceRef *ServiceReference `json:"serviceRef,omitempty"`

	// database is created if it is absent, marked as the benchmark's, and dropped
	// only then. Default dbbench.
	// +optional
	// +kubebuilder:default=dbbench
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z$_-]+$`
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['mysql', 'sys', 'information_schema', 'performance_schema'])",message="must not be a system database"
	Database string `json:"database,omitempty"`

	// allowExistingDatabase lets the benchmark work in a database that it did not
	// create. Even then it touches only tables that it created itself. Default false.
	// +optional
	AllowExistingDatabase bool `json:"allowExistingDatabase,omitempty"`

	// credentialsSecretRef is the Secret with the user's name and password.
	// +required
	CredentialsSecretRef CredentialsSecretReference `json:"credentialsSecretRef"`

	// tls protects the connections.
	// +optional
	// +kubebuilder:default={mode: Preferred}
	TLS TLS `json:"tls,omitzero"`

	// sessionVariables are set on every connection, by name. Values are sent as the
	// server's literals: numbers bare, all else quoted.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_.]*$'))",message="names must be those of system variables"
	SessionVariables map[string]SessionVariable `json:"sessionVariables,omitempty"`
}

// SessionVariable is the value of a session variable.
// +kubebuilder:validation:MaxLength=1024
type SessionVariable string

// ServiceReference names a Service of the same namespace.
type ServiceReference struct {
	// name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// port of the Service. Default 3306.
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// CredentialsSecretReference names a Secret of the same namespace that holds a
// user's name and password.
type CredentialsSecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// usernameKey is the key of the user's name. Default username.
	// +optional
	// +kubebuilder:default=username
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]{1,253}$`
	UsernameKey string `json:"usernameKey,omitempty"`
	// passwordKey is the key of the password. Default password.
	// +optional
	// +kubebuilder:default=password
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]{1,253}$`
	PasswordKey string `json:"passwordKey,omitempty"`
}

// TLSMode is how far a connection is protected.
// +kubebuilder:validation:Enum=Disabled;Preferred;Required;VerifyCA;VerifyIdentity
type TLSMode string

// The TLS modes, as in MySQL's --ssl-mode.
const (
	TLSDisabled       TLSMode = "Disabled"
	TLSPreferred      TLSMode = "Preferred"
	TLSRequired       TLSMode = "Required"
	TLSVerifyCA       TLSMode = "VerifyCA"
	TLSVerifyIdentity TLSMode = "VerifyIdentity"
)

// TLS configures the transport of the connections.
//
// +kubebuilder:validation:XValidation:rule="!(self.mode in ['VerifyCA', 'VerifyIdentity']) || has(self.caSecretRef)",message="caSecretRef is required by VerifyCA and VerifyIdentity"
type TLS struct {
	// mode is Disabled, Preferred (the default: TLS where the server offers it),
	// Required, VerifyCA or VerifyIdentity.
	// +optional
	// +kubebuilder:default=Preferred
	Mode TLSMode `json:"mode,omitempty"`
	// caSecretRef is the certificate authority that the server is checked against.
	// The default key is ca.crt.
	// +optional
	CASecretRef *SecretKeyReference `json:"caSecretRef,omitempty"`
	// clientSecretRef is a Secret of type kubernetes.io/tls with the client's
	// certificate (tls.crt) and key (tls.key).
	// +optional
	ClientSecretRef *SecretReference `json:"clientSecretRef,omitempty"`
	// serverName is the name that VerifyIdentity expects. Default: the host.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SecretKeyReference names a key of a Secret of the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in the Secret. Default ca.crt.
	// +optional
	// +kubebuilder:default=ca.crt
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]{1,253}$`
	Key string `json:"key,omitempty"`
}

// Load is how much is asked of the server, and for how long. Of several stop
// rules the first that is met ends a run. Where there is none, the workload's own
// end counts: one pass of slap's list, of payload's rows or of sql's statements in
// Sequential order, 500,000 requests of each client of linkbench, 10,000 events of
// oltp of sysbench 0.5. A workload without an end runs for 10 s as sysbench does.
type Load struct {
	// clients is the number of connections, over all runner pods. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Clients int32 `json:"clients,omitempty"`
	// eventsPerClient ends a client after so many events. Default: no such limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	EventsPerClient *int64 `json:"eventsPerClient,omitempty"`
	// events ends the run after so many events over all clients. Default: no such limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Events *int64 `json:"events,omitempty"`
	// duration ends the run after a time, warm-up excluded. Default: no such limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be greater than 0"
	Duration *Duration `json:"duration,omitempty"`
	// warmup is a time at the start that is excluded from the numbers. Default 0.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
	Warmup *Duration `json:"warmup,omitempty"`
	// rate is the number of events that arrive per second, over all runner pods
	// (open loop). Without it each client sends as soon as it can (closed loop). Latencies
	// count from the time of arrival, also of an event that had to wait for a client. One
	// that waits for more than 10 s, or until the end of the run, is counted as dropped.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int64 `json:"rate,omitempty"`
	// arrivals is how an open loop spaces its events: Poisson (the default) or Uniform.
	// +optional
	Arrivals Arrivals `json:"arrivals,omitempty"`
	// thinkTime is a pause of each client between two events of a closed loop. Default 0.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
	ThinkTime *Duration `json:"thinkTime,omitempty"`
	// ramp has fewer clients active, or in an open loop events arrive at other rates, in
	// steps that follow each other from the start of the measured part. The first step holds
	// in the warm-up, too; after the last one clients and rate hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Ramp []RampStep `json:"ramp,omitempty"`
}

// Arrivals is how an open loop spaces its events.
// +kubebuilder:validation:Enum=Poisson;Uniform
type Arrivals string

// The arrival processes.
const (
	ArrivalsPoisson Arrivals = "Poisson"
	ArrivalsUniform Arrivals = "Uniform"
)

// RampStep is a stretch of a ramp.
//
// +kubebuilder:validation:XValidation:rule="has(self.clients) != has(self.rate)",message="exactly one of clients and rate must be set"
type RampStep struct {
	// for is how long the step lasts.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(ms|s|m|h)){1,4}$`
	For Duration `json:"for"`
	// clients that are active in this step.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Clients *int32 `json:"clients,omitempty"`
	// rate in events per second in this step.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int64 `json:"rate,omitempty"`
}

// Sweep varies fields. Its points are the product of all axes, at most 4096, less
// the excluded ones.
type Sweep struct {
	// axes vary one field each.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Axes []Axis `json:"axes"`
	// exclude leaves out the points whose values equal all those of an entry, such
	// as {load.clients: 100, load.eventsPerClient: 10000}.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Exclude []Parameters `json:"exclude,omitempty"`
}

// Axis varies one field.
type Axis struct {
	// path of a field under workload or load, such as load.clients or workload.slap.engine.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(workload|load)(\.[a-zA-Z0-9]+)+$`
	Path string `json:"path"`
	// values that the field takes, in order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4096
	Values []apiextensionsv1.JSON `json:"values"`
}

// Parameters are values by the path of their field.
// +kubebuilder:validation:MaxProperties=16
type Parameters map[string]apiextensionsv1.JSON

// Runner shapes the pods that generate the load.
type Runner struct {
	// replicas is the number of pods that share each run's clients. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Replicas int32 `json:"replicas,omitempty"`
	// template adds to the pods what a cluster asks for.
	// +optional
	// +kubebuilder:default={}
	Template RunnerTemplate `json:"template,omitzero"`
}

// RunnerTemplate is the part of a runner pod that a user may shape.
type RunnerTemplate struct {
	// labels are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
	// image of the runner. Default: the manager's own.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
	// imagePullPolicy of the image.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// imagePullSecrets for the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// resources of the runner's container. Default: requests of 100m CPU and 64Mi
	// of memory, a memory limit of 512Mi and no CPU limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector chooses the nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// affinity chooses the nodes.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// tolerations of the pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// topologySpreadConstraints of the pods.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// priorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Metric is a number of a point that a threshold can be set on.
// +kubebuilder:validation:Enum=throughput;latency.mean;latency.p50;latency.p90;latency.p95;latency.p99;latency.p999;latency.max;elapsed;errors;errorRate
type Metric string

// Threshold is a limit on a metric of the points that it applies to.
//
// +kubebuilder:validation:XValidation:rule="[has(self.min), has(self.max), has(self.minRatio), has(self.maxRatio)].exists(x, x)",message="one of min, max, minRatio and maxRatio must be set"
// +kubebuilder:validation:XValidation:rule="(has(self.minRatio) || has(self.maxRatio)) == has(self.to)",message="minRatio and maxRatio go with to, and to with one of them"
type Threshold struct {
	// metric that is limited: throughput (events per second), latency.* and elapsed
	// (durations), errors (a count), errorRate (errors per attempt).
	// +required
	Metric Metric `json:"metric"`
	// min is the least allowed value: a duration for latency and elapsed, else a
	// decimal number.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?([nuµm]?s|m|h)?$`
	// +kubebuilder:validation:MaxLength=32
	Min string `json:"min,omitempty"`
	// max is the greatest allowed value.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?([nuµm]?s|m|h)?$`
	// +kubebuilder:validation:MaxLength=32
	Max string `json:"max,omitempty"`
	// minRatio is the least allowed ratio to what `to` names, such as "0.95".
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:MaxLength=32
	MinRatio string `json:"minRatio,omitempty"`
	// maxRatio is the greatest allowed ratio.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:MaxLength=32
	MaxRatio string `json:"maxRatio,omitempty"`
	// to is Baseline or the name of a target.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to,omitempty"`
	// where limits the threshold to points with these values. Default: all points.
	// +optional
	Where Parameters `json:"where,omitempty"`
}

// Baseline is the earlier result that an execution is compared with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.previous) && self.previous) != has(self.configMapRef)",message="exactly one of previous: true and configMapRef must be set"
type Baseline struct {
	// previous takes the latest execution of this benchmark that passed. Default false.
	// +optional
	Previous bool `json:"previous,omitempty"`
	// configMapRef takes a results ConfigMap of the same namespace.
	// +optional
	ConfigMapRef *corev1.LocalObjectReference `json:"configMapRef,omitempty"`
}

// Schedule starts executions at times.
type Schedule struct {
	// cron is a cron expression of five fields, or a name such as @daily.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Cron string `json:"cron"`
	// timeZone of the expression, an IANA name. Default Etc/UTC.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}
