package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/results"
)

// state is how an attempt stands.
type state int

const (
	// underWay: the runner works, or is about to.
	underWay state = iota
	// held: something keeps the pod from starting that may still pass.
	held
	// over: every runner has ended, so that its report can be read.
	over
	// broken: there will be no report.
	broken
)

// diagnosis is what an attempt's Job, pods and events tell.
type diagnosis struct {
	state state
	// reason and message are a condition's, where the state is held or broken.
	reason, message string
	// again is when to look again without being woken; 0 is never.
	again time.Duration
}

const (
	// patience is how long a pod may be without a start before its events are asked,
	// and how long what they say may pass by itself: a Secret that is applied a moment
	// later, a service account that a new namespace does not have yet.
	patience = 20 * time.Second
	// lookAgain is the time between two looks at a pod that does not start.
	lookAgain = 10 * time.Second
	// lostAfter is how long a pod may be terminating beyond its grace period before its
	// node is held to be lost.
	lostAfter = 2 * time.Minute
)

// WantsTrouble reports whether the events of an attempt are needed to understand it.
func WantsTrouble(now time.Time, a Attempt) bool {
	if a.Job == nil || jobEnd(a.Job) != nil {
		return false
	}
	if LacksPods(a) {
		return now.Sub(a.Job.CreationTimestamp.Time) >= lookAgain
	}
	for i := range a.Pods {
		p := &a.Pods[i]
		if creating(p) && now.Sub(p.CreationTimestamp.Time) >= patience {
			return true
		}
	}
	return false
}

// LacksPods reports whether pods of an attempt are not there yet; why, the events of its
// Job tell.
func LacksPods(a Attempt) bool {
	return a.Job != nil && len(a.Pods) < replicas(a.Job) && a.Job.Status.Failed == 0
}

// creating reports whether a pod has a node but its container is not made yet.
func creating(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodPending && p.Spec.NodeName != "" && (waiting(p) == nil || waiting(p).Reason == "ContainerCreating")
}

func waiting(p *corev1.Pod) *corev1.ContainerStateWaiting {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == RunnerContainer {
			return c.State.Waiting
		}
	}
	return nil
}

// diagnose says how an attempt stands. limit is how long what may pass is waited for.
func diagnose(now time.Time, a Attempt, limit time.Duration) diagnosis {
	endedPods := 0
	for i := range a.Pods {
		p := &a.Pods[i]
		if ended(p) {
			endedPods++
			continue
		}
		if d, ok := diagnoseTaken(p, a); ok {
			return d
		}
		if d := diagnosePod(now, p, a.Trouble); d.state != underWay || d.again > 0 {
			return d.bounded(now.Sub(p.CreationTimestamp.Time), limit)
		}
	}
	end := jobEnd(a.Job)
	switch {
	case endedPods >= replicas(a.Job), endedPods > 0 && end != nil:
		return diagnosis{state: over}
	case end != nil && endedPods == len(a.Pods):
		return diagnoseJobEnd(end)
	case LacksPods(a):
		age := now.Sub(a.Job.CreationTimestamp.Time)
		return diagnoseNoPod(age, a).bounded(age, limit)
	}
	return diagnosis{state: underWay}
}

// diagnoseTaken ends an attempt of several pods when one of them is taken away and none
// has failed before: the others cannot go on without it, and when it is gone nothing
// tells any more why.
func diagnoseTaken(p *corev1.Pod, a Attempt) (diagnosis, bool) {
	why := takenBecause(p)
	if why == "" || replicas(a.Job) == 1 || a.Job.DeletionTimestamp != nil || ending(a.Job) || slices.ContainsFunc(a.Pods, func(p corev1.Pod) bool { return ended(&p) }) {
		return diagnosis{}, false
	}
	return diagnosis{state: broken, reason: v1alpha1.ReasonRunnerLost,
		message: fmt.Sprintf("the pod %s, one of the run's %d, was taken away: %s", p.Name, replicas(a.Job), why)}, true
}

// ending reports whether a Job has ended, or is about to and deletes its pods.
func ending(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Status == corev1.ConditionTrue })
}

// bounded ends a wait that has taken too long.
func (d diagnosis) bounded(age, limit time.Duration) diagnosis {
	if d.state != held {
		return d
	}
	if age >= limit {
		return diagnosis{state: broken, reason: d.reason, message: fmt.Sprintf("%s (for %s)", d.message, age.Round(time.Second))}
	}
	if d.again == 0 || d.again > limit-age {
		d.again = limit - age
	}
	return d
}

func diagnosePod(now time.Time, p *corev1.Pod, trouble []Trouble) diagnosis {
	if t := p.DeletionTimestamp; t != nil {
		// The time of deletion includes the grace period.
		if left := t.Add(lostAfter).Sub(now); left > 0 {
			return diagnosis{state: underWay, again: left}
		}
		return diagnosis{state: broken, reason: v1alpha1.ReasonRunnerLost,
			message: fmt.Sprintf("the pod %s was deleted, but its node %s does not confirm its end; look at the node", p.Name, p.Spec.NodeName)}
	}
	if d, ok := diagnoseScheduling(p); ok {
		return d
	}
	if w := waiting(p); w != nil {
		if d, ok := diagnoseWaiting(w, p); ok {
			return d
		}
	}
	if creating(p) {
		return diagnoseCreating(now, p, trouble)
	}
	return diagnosis{state: underWay}
}

func diagnoseScheduling(p *corev1.Pod) (diagnosis, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return diagnosis{state: held, reason: v1alpha1.ReasonUnschedulable,
				message: fmt.Sprintf("the runner's pod %s fits on no node: %s; lower spec.runner.template.resources, or add nodes", p.Name, c.Message)}, true
		}
	}
	return diagnosis{}, false
}

// diagnoseWaiting reads the reason that the kubelet gives for a container that waits.
func diagnoseWaiting(w *corev1.ContainerStateWaiting, p *corev1.Pod) (diagnosis, bool) {
	switch w.Reason {
	case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName":
		return diagnosis{state: broken, reason: v1alpha1.ReasonImagePullFailed,
			message: fmt.Sprintf("the image %s cannot be had: %s; set spec.runner.template.image, imagePullSecrets or the manager's --runner-image", p.Spec.Containers[0].Image, w.Message)}, true
	case "CreateContainerConfigError":
		reason := v1alpha1.ReasonPodRejected
		if strings.Contains(w.Message, "secret") {
			reason = v1alpha1.ReasonSecretNotFound
		}
		return diagnosis{state: broken, reason: reason, message: "the container cannot be made: " + w.Message}, true
	case "CreateContainerError", "RunContainerError":
		return diagnosis{state: broken, reason: v1alpha1.ReasonRunnerError,
			message: "the container cannot be started: " + w.Message + "; spec.runner.template.image must hold /runner"}, true
	}
	return diagnosis{}, false
}

// missingFiles tell by the kubelet's text what a volume lacks: there is nothing else to
// tell it by.
var missingFiles = []struct{ says, reason, message string }{
	{"secret \"", v1alpha1.ReasonSecretNotFound, secretMissing},
	{"references non-existent secret key", v1alpha1.ReasonSecretNotFound, secretMissing},
	{"configmap \"", v1alpha1.ReasonConfigMapNotFound, configMapMissing},
	{"references non-existent config key", v1alpha1.ReasonConfigMapNotFound, configMapMissing},
}

const (
	secretMissing    = "a Secret of the target, or a key of it, is missing: %s; create it, or correct credentialsSecretRef or tls"
	configMapMissing = "the ConfigMap with the statements, or the key of it, is missing: %s; create it, or correct spec.workload.sql.configMapKeyRef"
)

// diagnoseCreating looks for a volume that cannot be mounted. A mounted Secret that
// is missing shows in no status, only in the text of events.
func diagnoseCreating(now time.Time, p *corev1.Pod, trouble []Trouble) diagnosis {
	if left := patience - now.Sub(p.CreationTimestamp.Time); left > 0 {
		return diagnosis{state: underWay, again: left}
	}
	for _, t := range trouble {
		if t.Reason != "FailedMount" || strings.Contains(t.Message, "failed to sync") {
			continue
		}
		for _, missing := range missingFiles {
			if strings.Contains(t.Message, missing.says) {
				return diagnosis{state: broken, reason: missing.reason, message: fmt.Sprintf(missing.message, t.Message)}
			}
		}
	}
	return diagnosis{state: underWay, again: lookAgain}
}

// diagnoseNoPod says why a Job has no pod. The Job controller tells it in events only.
func diagnoseNoPod(age time.Duration, a Attempt) diagnosis {
	for _, t := range a.Trouble {
		if t.Reason != "FailedCreate" {
			continue
		}
		if strings.Contains(t.Message, "exceeded quota") {
			return diagnosis{state: held, again: lookAgain, reason: v1alpha1.ReasonQuotaExceeded,
				message: "a ResourceQuota of the namespace refuses the runner's pod: " + t.Message + "; raise it, or lower spec.runner.template.resources"}
		}
		switch {
		case age < patience:
		case strings.Contains(t.Message, "failed quota"):
			return diagnosis{state: broken, reason: v1alpha1.ReasonQuotaExceeded, message: "a ResourceQuota of the namespace wants what the runner's pod does not say: " +
				t.Message + "; set it in spec.runner.template.resources, or give the namespace a LimitRange with defaults"}
		default:
			return diagnosis{state: broken, reason: v1alpha1.ReasonPodRejected, message: "the runner's pod is refused: " + t.Message +
				"; spec.runner.template says what it asks for"}
		}
	}
	switch {
	case age < patience && len(a.Trouble) == 0:
		return diagnosis{state: underWay, again: lookAgain} // as every run at first: not worth a word
	case len(a.Pods) > 0:
		return diagnosis{state: held, again: lookAgain, reason: v1alpha1.ReasonPending,
			message: fmt.Sprintf("the Job has %d of its %d pods", len(a.Pods), replicas(a.Job))}
	}
	return diagnosis{state: held, again: lookAgain, reason: v1alpha1.ReasonPending, message: "the Job has no pod yet"}
}

// diagnoseJobEnd speaks for pods that are gone.
func diagnoseJobEnd(end *batchv1.JobCondition) diagnosis {
	if end.Reason == batchv1.JobReasonDeadlineExceeded {
		return diagnosis{state: broken, reason: v1alpha1.ReasonDeadlineExceeded,
			message: "the run did not end within spec.runTimeout, and was stopped from outside"}
	}
	return diagnosis{state: broken, reason: v1alpha1.ReasonRunnerLost,
		message: "the runner's pod is gone, and its report with it: " + end.Message}
}

// failure is a broken attempt as a run's failure.
func (d diagnosis) failure() *results.Failure {
	reason := d.reason
	if reason == v1alpha1.ReasonPending {
		reason = v1alpha1.ReasonRunnerLost
	}
	return &results.Failure{Reason: reason, Message: d.message}
}
