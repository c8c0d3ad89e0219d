// Package resources builds the objects that a benchmark consists of in a cluster. It
// is pure: the same input gives the same object.
package resources

import (
	"fmt"
	"strings"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

// The labels of everything that belongs to a benchmark, besides the recommended ones.
const (
	LabelBenchmark = "dbbench.dev/benchmark"     // its name, cut to fit
	LabelUID       = "dbbench.dev/benchmark-uid" // says for sure whose it is
	LabelExecution = "dbbench.dev/execution"
	LabelRun       = "dbbench.dev/run"
	LabelPoint     = "dbbench.dev/point"
	LabelTarget    = "dbbench.dev/target"
	LabelServer    = "dbbench.dev/server" // digest of the server's address
	LabelDataset   = "dbbench.dev/dataset"
	LabelAttempt   = "dbbench.dev/attempt" // how often the run was lost before
	LabelPurpose   = "dbbench.dev/purpose"
)

// The values of LabelPurpose.
const (
	PurposeRun     = "run"
	PurposeCleanup = "cleanup"
	PurposeResults = "results"
	PurposeService = "service"
	PurposeReport  = "report"
)

// maxLabel is the greatest length of a label's value, and of the names of objects
// from which labels are made.
const maxLabel = 63

// Labels are those of an object of a benchmark's execution.
func Labels(b *v1alpha1.DBBenchmark, execution, purpose string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "dbbench",
		"app.kubernetes.io/instance":   plan.Shorten(b.Name, maxLabel),
		"app.kubernetes.io/component":  purpose,
		"app.kubernetes.io/part-of":    "dbbench",
		"app.kubernetes.io/managed-by": "dbbench-manager",
		LabelBenchmark:                 plan.Shorten(b.Name, maxLabel),
		LabelUID:                       string(b.UID),
		LabelExecution:                 execution,
		LabelPurpose:                   purpose,
	}
}

// RunJobName names the Job of an attempt at a run.
func RunJobName(b *v1alpha1.DBBenchmark, execution string, run plan.Run) string {
	if run.Attempt > 0 {
		return JobName(b, execution, fmt.Sprintf("%s-r%d", run.ID, run.Attempt))
	}
	return JobName(b, execution, run.ID)
}

// ServiceName names the Service by which the pods of a benchmark's runs find each other.
// It is no other benchmark's, also not that of an earlier one of the same name, and begins
// with a letter, as the names of Services must.
func ServiceName(b *v1alpha1.DBBenchmark) string {
	return join("dbbench-"+b.Name, string(b.UID[:min(8, len(b.UID))]), maxLabel)
}

// JobName names a Job. Pods add six characters to it, and a label holds it.
func JobName(b *v1alpha1.DBBenchmark, execution, run string) string {
	return join(b.Name, execution+"-"+run, maxLabel-6)
}

// ResultsName names a shard of an execution's results.
func ResultsName(b *v1alpha1.DBBenchmark, execution string, shard int) string {
	return join(b.Name, fmt.Sprintf("results-%s-%d", execution, shard), 253)
}

// ReportName names the report of an execution.
func ReportName(b *v1alpha1.DBBenchmark, execution string) string {
	return join(b.Name, "report-"+execution, 253)
}

// join puts a suffix to a benchmark's name, and cuts the whole where it is too long.
// A dot would make a Job's name unfit for the host names of its pods.
func join(name, suffix string, limit int) string {
	return plan.Shorten(strings.ReplaceAll(name, ".", "-")+"-"+suffix, limit)
}
