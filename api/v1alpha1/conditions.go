package v1alpha1

// The types of condition. Ready, Reconciling and Stalled follow kstatus; Complete
// and Failed end an execution; Passed is the verdict of the thresholds.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	ConditionComplete    = "Complete"
	ConditionFailed      = "Failed"
	ConditionPassed      = "Passed"
)

// The reasons of conditions while an execution goes on.
const (
	// ReasonPending: no run has started yet.
	ReasonPending = "Pending"
	// ReasonRunning: a run is under way.
	ReasonRunning = "Running"
	// ReasonTargetBusy: another benchmark holds the server; the message names it.
	ReasonTargetBusy = "TargetBusy"
	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonUnschedulable: the runner pod fits on no node.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQuotaExceeded: a ResourceQuota refuses the runner pod.
	ReasonQuotaExceeded = "QuotaExceeded"
)

// The reasons with which an execution ends.
const (
	// ReasonComplete: every run succeeded.
	ReasonComplete = "Complete"
	// ReasonInvalidSpec: the planner refuses the spec; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonRunsFailed: with onFailure: Continue, some runs failed.
	ReasonRunsFailed = "RunsFailed"
	// ReasonSecretNotFound: a Secret or a key of it is missing.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonConfigMapNotFound: the ConfigMap with the statements, or the key of it, is
	// missing.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonImagePullFailed: the runner's image cannot be had.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonPodRejected: admission refuses the runner pod.
	ReasonPodRejected = "PodRejected"
	// ReasonRunnerOOMKilled: the runner exceeded its memory limit.
	ReasonRunnerOOMKilled = "RunnerOOMKilled"
	// ReasonRunnerLost: a pod was evicted or deleted, its node lost, its log gone before
	// it was read, or it did not come to where the pods of a run meet.
	ReasonRunnerLost = "RunnerLost"
	// ReasonDeadlineExceeded: a run took longer than spec.runTimeout.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonInvalidRecord: the runner's report is not one; the message says why.
	ReasonInvalidRecord = "InvalidRecord"
	// ReasonCancelled: a change of the spec ended the execution.
	ReasonCancelled = "Cancelled"

	// The reasons below are the runner's own findings.

	// ReasonAuthenticationFailed: the server refuses the user or the password.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonTargetUnreachable: the host does not resolve or does not answer.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonTLSFailed: the connection cannot be protected as asked.
	ReasonTLSFailed = "TLSFailed"
	// ReasonPreflightFailed: the server cannot run this benchmark as it is.
	ReasonPreflightFailed = "PreflightFailed"
	// ReasonDatabaseNotOwned: the database or a table in it is somebody else's.
	ReasonDatabaseNotOwned = "DatabaseNotOwned"
	// ReasonPrepareFailed: the data could not be loaded.
	ReasonPrepareFailed = "PrepareFailed"
	// ReasonWorkloadFailed: a statement failed while the run was measured.
	ReasonWorkloadFailed = "WorkloadFailed"
	// ReasonVerifyFailed: a check after the run failed.
	ReasonVerifyFailed = "VerifyFailed"
	// ReasonCleanupFailed: the data could not be dropped.
	ReasonCleanupFailed = "CleanupFailed"
	// ReasonInterrupted: the runner was told to stop.
	ReasonInterrupted = "Interrupted"
	// ReasonPeerFailed: a pod stopped because another one of its run had failed, whose own
	// report is missing.
	ReasonPeerFailed = "PeerFailed"
	// ReasonRunnerError: a defect of the runner.
	ReasonRunnerError = "RunnerError"
)

// The reasons of condition Passed.
const (
	// ReasonThresholdsMet: every threshold is met.
	ReasonThresholdsMet = "ThresholdsMet"
	// ReasonThresholdsNotMet: the message lists those that are not.
	ReasonThresholdsNotMet = "ThresholdsNotMet"
	// ReasonNotJudged: the execution has not ended, or some thresholds could not be
	// judged; the message says which and why.
	ReasonNotJudged = "NotJudged"
	// ReasonNoThresholds: the spec sets none.
	ReasonNoThresholds = "NoThresholds"
)
