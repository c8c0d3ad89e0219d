package plan

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// Finalizer keeps a benchmark until its data in the target has been seen to.
const Finalizer = "dbbench.dev/target-data"

// Observed is all that was seen of a benchmark and of those that share its servers.
type Observed struct {
	// Runs are those of the spec; SpecError is why there are none.
	Runs      []Run
	SpecError error
	// Results are those stored of the current execution, by the id of the run.
	Results map[string]results.Envelope
	// Losses count, by the id of the run, how often a run of it was begun, lost, and is to
	// be repeated.
	Losses map[string]int32
	// Maps are the ConfigMaps with results, of all executions, in the order of their shards.
	Maps []ResultMap
	// Attempts are the Jobs and pods of runs, of all executions.
	Attempts []Attempt
	// Cleanups are the Jobs and pods that drop data, of all executions.
	Cleanups []Attempt
	// Progress is what the runner under way has said last, if anything.
	Progress *Progress
	// Memo spares the aggregation of points that have not changed since; nil spares none.
	Memo *results.Memo
	// Queue are the unfinished executions of other benchmarks on the same servers.
	Queue []Claim
	// Occupants are other benchmarks, as namespace/name, of which a run may be at work
	// on the same servers.
	Occupants []string
	// Baseline is what spec.baseline names, BaselineError why it cannot be had; nil where
	// there is none yet. They are read only where WantsBaseline.
	Baseline      *results.Baseline
	BaselineError error
	// NoReport is set where the report cannot be written, or nobody keeps one.
	NoReport bool
	// CannotCreate is why the API refused the last Job, if it did.
	CannotCreate *Refusal
}

// ResultMap is a ConfigMap with results, or with the report.
type ResultMap struct {
	Name      string
	Execution string
	Created   time.Time
	// Report tells a report, and Generation that of the spec whose thresholds it judges.
	Report     bool
	Generation int64
}

// Attempt is a Job and its pods. A pod may be left over without its Job.
type Attempt struct {
	Execution string
	Run       string
	// Number is how often the run was begun before and lost.
	Number int32
	// Target and Dataset say what a clean-up drops.
	Target, Dataset string

	Job  *batchv1.Job
	Pods []corev1.Pod
	// Trouble are warnings that the cluster has recorded about the Job or its pods;
	// they are read only where WantsTrouble.
	Trouble []Trouble
}

// Trouble is a warning event.
type Trouble struct{ Reason, Message string }

// Claim is a benchmark's place in the queue for its servers.
type Claim struct {
	Namespace, Name string
	Started         time.Time
	Created         time.Time
}

func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// Compare orders claims by who came first. The order is total, so that benchmarks
// which share several servers cannot wait for each other.
func (c Claim) Compare(d Claim) int {
	return cmp.Or(c.Started.Compare(d.Started), c.Created.Compare(d.Created), cmp.Compare(c.String(), d.String()))
}

// ClaimOf is a benchmark's claim, with false where it makes none.
func ClaimOf(b *v1alpha1.DBBenchmark) (Claim, bool) {
	e := b.Status.Execution
	if e == nil || e.CompletionTime != nil || b.Spec.Suspend || !b.DeletionTimestamp.IsZero() {
		return Claim{}, false
	}
	return Claim{b.Namespace, b.Name, e.StartTime.Time, b.CreationTimestamp.Time}, true
}

// RunnerContainer is the name of the container that reports.
const RunnerContainer = "runner"

// terminated is the end of a pod's runner, nil while there is none.
func terminated(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == RunnerContainer {
			return c.State.Terminated
		}
	}
	return nil
}

// ended reports whether nothing runs in a pod any more, nor will.
func ended(p *corev1.Pod) bool {
	return terminated(p) != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Quiet reports whether nothing of the attempt runs any more, nor will.
func (a Attempt) Quiet() bool {
	for i := range a.Pods {
		if !ended(&a.Pods[i]) {
			return false
		}
	}
	return a.Job == nil || a.Job.DeletionTimestamp != nil || len(a.Pods) >= replicas(a.Job) || jobEnd(a.Job) != nil
}

func replicas(j *batchv1.Job) int {
	if j.Spec.Completions == nil {
		return 1
	}
	return int(*j.Spec.Completions)
}

// jobEnd is the condition with which a Job has ended, nil while it goes on.
func jobEnd(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}
