package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DBBenchmarkStatus is what was found.
type DBBenchmarkStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled, Complete, Failed, Passed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// workload names the workload, such as slap/Write.
	// +optional
	Workload string `json:"workload,omitempty"`
	// execution is the current or latest pass over all runs.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// latest is the result of the point that was finished last.
	// +optional
	Latest *LatestResult `json:"latest,omitempty"`
	// points are the results so far. What does not fit is in the ConfigMaps.
	// +optional
	// +listType=atomic
	Points []PointResult `json:"points,omitempty"`
	// pointsTruncated is the number of points that are left out of points.
	// +optional
	PointsTruncated int32 `json:"pointsTruncated,omitempty"`
	// history lists earlier executions, newest first.
	// +optional
	// +listType=atomic
	History []ExecutionSummary `json:"history,omitempty"`
	// reportConfigMap holds the report of the current execution, once it has ended.
	// +optional
	ReportConfigMap string `json:"reportConfigMap,omitempty"`
	// resultsConfigMaps hold the full records of the current execution.
	// +optional
	// +listType=atomic
	ResultsConfigMaps []string `json:"resultsConfigMaps,omitempty"`
	// schedule is how the schedule of the spec stands.
	// +optional
	Schedule *ScheduleStatus `json:"schedule,omitempty"`
	// lastRunRequest is the value of the annotation dbbench.dev/run-requested-at that
	// was seen to last. Another value starts an execution.
	// +optional
	LastRunRequest string `json:"lastRunRequest,omitempty"`
}

// AnnotationRunRequestedAt asks for an execution whenever its value changes, such as to
// the time of the request.
const AnnotationRunRequestedAt = "dbbench.dev/run-requested-at"

// ScheduleStatus is how a schedule stands.
type ScheduleStatus struct {
	// nextTime is when the next execution is to start.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
	// lastTime is the latest of the scheduled times that have passed.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// skipped is the number of scheduled times without an execution since the last one
	// with one.
	// +optional
	Skipped int32 `json:"skipped,omitempty"`
	// skippedBecause says why the latest of them was skipped.
	// +optional
	SkippedBecause string `json:"skippedBecause,omitempty"`
}

// Trigger is what started an execution.
type Trigger string

// The triggers.
const (
	TriggerSpec     Trigger = "Spec"
	TriggerSchedule Trigger = "Schedule"
	TriggerRequest  Trigger = "Request"
)

// Execution is one pass over all runs.
type Execution struct {
	// id names the execution; it is part of the names of its Jobs and ConfigMaps.
	ID string `json:"id"`
	// trigger is what started it.
	// +optional
	Trigger Trigger `json:"trigger,omitempty"`
	// generation of the spec that it runs.
	Generation int64 `json:"generation"`
	// planHash is a digest of the part of the spec that decides the runs.
	PlanHash string `json:"planHash"`
	// startTime is when it was queued.
	StartTime metav1.Time `json:"startTime"`
	// completionTime is when its last run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// total is the number of runs.
	Total int32 `json:"total"`
	// completed is the number of runs that succeeded.
	Completed int32 `json:"completed"`
	// failed is the number of runs that did not.
	Failed int32 `json:"failed"`
	// progress is completed of total, such as 45/90.
	// +optional
	Progress string `json:"progress,omitempty"`
	// activeRun is the run under way.
	// +optional
	ActiveRun *ActiveRun `json:"activeRun,omitempty"`
}

// ActiveRun is the run under way.
type ActiveRun struct {
	// id of the run.
	ID string `json:"id"`
	// target that it measures.
	Target string `json:"target"`
	// parameters of its point.
	// +optional
	Parameters Parameters `json:"parameters,omitempty"`
	// iteration, from 1.
	Iteration int32 `json:"iteration"`
	// attempt is how often it was begun before and lost.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// startTime is when its Job was created.
	StartTime metav1.Time `json:"startTime"`
	// phase is the part of its work that the runner is in, such as Prepare or Measure.
	// +optional
	Phase string `json:"phase,omitempty"`
	// percentDone, 0 to 100, where it is known.
	// +optional
	PercentDone *int32 `json:"percentDone,omitempty"`
	// eventsPerSecond in the latest interval, over all pods.
	// +optional
	EventsPerSecond string `json:"eventsPerSecond,omitempty"`
	// p99Micros of the latest interval, in microseconds; of several pods the longest.
	// +optional
	P99Micros int64 `json:"p99Micros,omitempty"`
}

// LatestResult is the result of the point that was finished last.
type LatestResult struct {
	// eventsPerSecond is the median throughput.
	EventsPerSecond string `json:"eventsPerSecond"`
	// p99 is the 99th percentile of the latency, such as 1.234ms.
	P99 string `json:"p99"`
}

// PointResult is what was found at one point on one target.
type PointResult struct {
	// id of the point, the same for every target.
	ID string `json:"id"`
	// target that was measured.
	Target string `json:"target"`
	// parameters of the point: the values of the sweep's axes.
	// +optional
	Parameters map[string]apiextensionsv1.JSON `json:"parameters,omitempty"`
	// iterations that succeeded.
	Iterations int32 `json:"iterations"`
	// failed is the number of iterations that did not succeed.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// clients is the number of connections.
	Clients int32 `json:"clients"`
	// events is the number of successful events, over all iterations.
	Events int64 `json:"events"`
	// errors is the number of failed events, over all iterations.
	Errors int64 `json:"errors"`
	// elapsedSeconds is the duration of a run as mysqlslap prints it: average,
	// minimum and maximum over the iterations, in seconds with three decimals.
	// +optional
	ElapsedSeconds *ElapsedSeconds `json:"elapsedSeconds,omitempty"`
	// eventsPerSecond is the throughput over the iterations.
	// +optional
	EventsPerSecond *Spread `json:"eventsPerSecond,omitempty"`
	// latencyMicros is the latency of all events of all iterations, in microseconds.
	// +optional
	LatencyMicros *Latency `json:"latencyMicros,omitempty"`
	// contentIdentical says whether every run of the point, on all targets, left tables of
	// the same content. It is set where the workload reports a checksum.
	// +optional
	ContentIdentical *bool `json:"contentIdentical,omitempty"`
	// startSkewMicros is the longest time, in microseconds, between the starts of the pods
	// of a run, by their own clocks.
	// +optional
	StartSkewMicros int64 `json:"startSkewMicros,omitempty"`
	// verdict of the thresholds that apply to this point: Passed or Failed.
	// +optional
	Verdict string `json:"verdict,omitempty"`
	// warnings are what a reader must know to trust the numbers.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// ElapsedSeconds are durations over the iterations, in seconds with three decimals.
type ElapsedSeconds struct {
	// average over the iterations.
	Average string `json:"average"`
	// minimum over the iterations.
	Minimum string `json:"minimum"`
	// maximum over the iterations.
	Maximum string `json:"maximum"`
}

// Spread is a number over the iterations, as a decimal.
type Spread struct {
	// median over the iterations.
	Median string `json:"median"`
	// minimum over the iterations.
	Minimum string `json:"minimum"`
	// maximum over the iterations.
	Maximum string `json:"maximum"`
}

// Latency holds percentiles in microseconds, from merged histograms.
type Latency struct {
	// mean in microseconds.
	Mean int64 `json:"mean"`
	// p50 is the median, in microseconds.
	P50 int64 `json:"p50"`
	// p90 is the 90th percentile, in microseconds.
	P90 int64 `json:"p90"`
	// p95 is the 95th percentile, in microseconds.
	P95 int64 `json:"p95"`
	// p99 is the 99th percentile, in microseconds.
	P99 int64 `json:"p99"`
	// p999 is the 99.9th percentile, in microseconds.
	P999 int64 `json:"p999"`
	// max is the longest latency, in microseconds.
	Max int64 `json:"max"`
}

// ExecutionSummary is an earlier execution.
type ExecutionSummary struct {
	// id of the execution.
	ID string `json:"id"`
	// trigger is what started it.
	// +optional
	Trigger Trigger `json:"trigger,omitempty"`
	// generation of the spec that it ran.
	Generation int64 `json:"generation"`
	// startTime is when it was queued.
	StartTime metav1.Time `json:"startTime"`
	// completionTime is when its last run ended, or when it was cancelled.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// reason of the condition that it ended with.
	Reason string `json:"reason"`
	// passed is the verdict of the thresholds.
	// +optional
	Passed *bool `json:"passed,omitempty"`
	// completed is the number of runs that succeeded.
	Completed int32 `json:"completed"`
	// total is the number of runs.
	Total int32 `json:"total"`
	// reportConfigMap holds its report.
	// +optional
	ReportConfigMap string `json:"reportConfigMap,omitempty"`
	// resultsConfigMaps hold its records.
	// +optional
	// +listType=atomic
	ResultsConfigMaps []string `json:"resultsConfigMaps,omitempty"`
}
