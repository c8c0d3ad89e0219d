package plan

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/runner/contract"
)

func waitingFor(reason, message string) corev1.Pod {
	p := pod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	p.Status.Phase = corev1.PodPending
	return p
}

func unschedulable() corev1.Pod {
	p := pod(corev1.ContainerState{})
	p.Spec.NodeName, p.Status.ContainerStatuses, p.Status.Phase = "", nil, corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"}}
	return p
}

func deletedPod() corev1.Pod {
	p := running()
	p.DeletionTimestamp = &metav1.Time{Time: t0}
	return p
}

func attemptOf(trouble Trouble, end *batchv1.JobCondition, pods ...corev1.Pod) Attempt {
	a := Attempt{Run: "r1", Pods: pods, Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(t0)}}}
	if trouble.Reason != "" {
		a.Trouble = []Trouble{trouble}
	}
	if end != nil {
		a.Job.Status.Conditions = []batchv1.JobCondition{*end}
	}
	return a
}

func TestDiagnose(t *testing.T) {
	jobFailed := func(reason string) *batchv1.JobCondition {
		return &batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: "why"}
	}
	none := Trouble{}
	mount := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "credentials" : secret "nobody" not found`}
	key := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "credentials" : references non-existent secret key: nokey`}
	secretOfCache := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "credentials" : secret "cache" not found`}
	statements := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "statements" : configmap "queries" not found`}
	statementsKey := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "statements" : configmap references non-existent config key: nokey`}
	slow := Trouble{"FailedMount", `MountVolume.SetUp failed for volume "credentials" : failed to sync secret cache: timed out waiting for the condition`}
	quota := Trouble{"FailedCreate", `Error creating: pods "x" is forbidden: exceeded quota: small, requested: pods=1`}
	security := Trouble{"FailedCreate", `Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest"`}
	limits := Trouble{"FailedCreate", `Error creating: pods "x" is forbidden: maximum memory usage per Container is 128Mi, but limit is 512Mi`}
	webhook := Trouble{"FailedCreate", `Error creating: admission webhook "policy.example.com" denied the request: no`}
	creatingPod := waitingFor("ContainerCreating", "")
	for _, tc := range []struct {
		name   string
		age    time.Duration
		a      Attempt
		state  state
		reason string
		again  bool
	}{
		{"running", time.Minute, attemptOf(none, nil, running()), underWay, "", false},
		{"ended", time.Minute, attemptOf(none, nil, exited(0)), over, "", false},
		{"ended, and so has the Job", time.Minute, attemptOf(none, jobFailed("BackoffLimitExceeded"), exited(1)), over, "", false},
		{"just created", time.Second, attemptOf(none, nil), underWay, "", true},
		{"without a pod for long", 25 * time.Second, attemptOf(none, nil), held, "Pending", true},
		{"image not pulled", time.Second, attemptOf(none, nil, waitingFor("ImagePullBackOff", "no such host")), broken, "ImagePullFailed", false},
		{"image being tried", time.Second, attemptOf(none, nil, waitingFor("ErrImagePull", "")), underWay, "", false},
		{"image never pulled", time.Second, attemptOf(none, nil, waitingFor("ErrImageNeverPull", "")), broken, "ImagePullFailed", false},
		{"image of a bad name", time.Second, attemptOf(none, nil, waitingFor("InvalidImageName", "")), broken, "ImagePullFailed", false},
		{"config error of a secret", time.Second, attemptOf(none, nil, waitingFor("CreateContainerConfigError", `secret "x" not found`)), broken, "SecretNotFound", false},
		{"another config error", time.Second, attemptOf(none, nil, waitingFor("CreateContainerConfigError", "image will run as root")), broken, "PodRejected", false},
		{"no such program", time.Second, attemptOf(none, nil, waitingFor("CreateContainerError", "exec: /runner")), broken, "RunnerError", false},
		{"container being made", 5 * time.Second, attemptOf(none, nil, creatingPod), underWay, "", true},
		{"secret missing, at first", 5 * time.Second, attemptOf(mount, nil, creatingPod), underWay, "", true},
		{"secret missing", 25 * time.Second, attemptOf(mount, nil, creatingPod), broken, "SecretNotFound", false},
		{"key missing", 25 * time.Second, attemptOf(key, nil, creatingPod), broken, "SecretNotFound", false},
		{"secret of the cache missing", 25 * time.Second, attemptOf(secretOfCache, nil, creatingPod), broken, "SecretNotFound", false},
		{"statements missing", 25 * time.Second, attemptOf(statements, nil, creatingPod), broken, "ConfigMapNotFound", false},
		{"key of the statements missing", 25 * time.Second, attemptOf(statementsKey, nil, creatingPod), broken, "ConfigMapNotFound", false},
		{"kubelet slow", 25 * time.Second, attemptOf(slow, nil, creatingPod), underWay, "", true},
		{"fits nowhere", time.Minute, attemptOf(none, nil, unschedulable()), held, "Unschedulable", true},
		{"fits nowhere for long", 2 * time.Hour, attemptOf(none, nil, unschedulable()), broken, "Unschedulable", false},
		{"quota", time.Minute, attemptOf(quota, nil), held, "QuotaExceeded", true},
		{"quota of what is not set", time.Minute, attemptOf(Trouble{"FailedCreate", `pods "x" is forbidden: failed quota: q: must specify limits.cpu for: runner`}, nil), broken, "QuotaExceeded", false},
		{"quota for long", 2 * time.Hour, attemptOf(quota, nil), broken, "QuotaExceeded", false},
		{"refused, at first", 11 * time.Second, attemptOf(security, nil), held, "Pending", true},
		{"refused", 25 * time.Second, attemptOf(security, nil), broken, "PodRejected", false},
		{"outside of the LimitRange", 25 * time.Second, attemptOf(limits, nil), broken, "PodRejected", false},
		{"denied by a webhook", 25 * time.Second, attemptOf(webhook, nil), broken, "PodRejected", false},
		{"pod being deleted", time.Second, attemptOf(none, nil, deletedPod()), underWay, "", true},
		{"node lost", 3 * time.Minute, attemptOf(none, nil, deletedPod()), broken, "RunnerLost", false},
		{"pods gone", time.Minute, attemptOf(none, jobFailed("BackoffLimitExceeded")), broken, "RunnerLost", false},
		{"deadline", time.Minute, attemptOf(none, jobFailed("DeadlineExceeded")), broken, "DeadlineExceeded", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := diagnose(t0.Add(tc.age), tc.a, time.Hour)
			if d.state != tc.state || d.reason != tc.reason {
				t.Errorf("state %d, %s: %s", d.state, d.reason, d.message)
			}
			if (d.again > 0) != tc.again {
				t.Errorf("again after %s", d.again)
			}
			if d.reason != "" && d.message == "" {
				t.Error("no message")
			}
		})
	}
}

func TestWantsTrouble(t *testing.T) {
	late := t0.Add(time.Minute)
	for _, tc := range []struct {
		name string
		a    Attempt
		want bool
	}{
		{"no pod", attemptOf(Trouble{}, nil), true},
		{"container being made", attemptOf(Trouble{}, nil, waitingFor("ContainerCreating", "")), true},
		{"running", attemptOf(Trouble{}, nil, running()), false},
		{"without a Job", Attempt{Pods: []corev1.Pod{running()}}, false},
	} {
		if got := WantsTrouble(late, tc.a); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
		if WantsTrouble(t0.Add(time.Second), tc.a) {
			t.Errorf("%s: asked too early", tc.name)
		}
	}
}

func TestJudge(t *testing.T) {
	evicted := pod(corev1.ContainerState{})
	evicted.Status.ContainerStatuses, evicted.Status.Phase, evicted.Status.Reason = nil, corev1.PodFailed, "Evicted"
	oom := pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}})
	started := pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "no such file"}})
	said := func(f *contract.Failure) corev1.Pod {
		p := exited(1)
		b, err := contract.EncodeTerminationMessage(contract.TerminationMessage{Run: "r1", Outcome: contract.OutcomeFailed, Failure: f})
		if err != nil {
			t.Fatal(err)
		}
		p.Status.ContainerStatuses[0].State.Terminated.Message = string(b)
		return p
	}
	drained := exited(1)
	drained.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	good := &contract.Record{Result: contract.Result{Outcome: contract.OutcomeSucceeded, Events: 1}}
	bad := func(c contract.Class) *contract.Record {
		return &contract.Record{Result: contract.Result{Outcome: contract.OutcomeFailed, Failure: &contract.Failure{Class: c, MySQLError: 1045, Message: "Access denied", Hint: "check the Secret"}}}
	}
	cut := &contract.RecordError{Reason: contract.ReasonTruncated, Detail: "the log ends"}
	for _, tc := range []struct {
		name   string
		pod    corev1.Pod
		record *contract.Record
		reason string
		says   string
	}{
		{"success", exited(0), good, "", ""},
		{"success, they say", exited(1), good, "InvalidRecord", "exit code"},
		{"its own finding", exited(1), bad(contract.ClassAuthenticationFailed), "AuthenticationFailed", "Access denied (MySQL error 1045); check the Secret"},
		{"bad run spec", exited(2), bad(contract.ClassInvalidRunSpec), "InvalidSpec", ""},
		{"exit 0 without a record", exited(0), nil, "InvalidRecord", "exit code 0"},
		{"exit 3 without a record", exited(3), nil, "InvalidRecord", "exit code 3"},
		{"the termination message speaks", said(&contract.Failure{Class: contract.ClassTargetUnreachable, Message: "refused"}), nil, "TargetUnreachable", "refused"},
		{"out of memory", oom, nil, "RunnerOOMKilled", "memory"},
		{"evicted", evicted, nil, "RunnerLost", "Evicted"},
		{"drained, and it said so", drained, bad(contract.ClassInterrupted), "RunnerLost", "EvictionByEvictionAPI"},
		{"preempted, and it said so", disruptedPod(exited(1), "PreemptionByScheduler"), bad(contract.ClassInterrupted), "RunnerLost", "PreemptionByScheduler"},
		{"preempted without a word", disruptedPod(exited(137), "PreemptionByScheduler"), nil, "RunnerLost", "PreemptionByScheduler"},
		{"node gone", disruptedPod(pod(corev1.ContainerState{}), "DeletionByTaintManager"), nil, "RunnerLost", "DeletionByTaintManager"},
		{"interrupted by itself", exited(1), bad(contract.ClassInterrupted), "Interrupted", ""},
		{"no such program", started, nil, "RunnerError", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Report{Pod: &tc.pod, Record: tc.record}
			if r.Record == nil {
				r.Err = cut
			}
			e := Judge(t0.Add(time.Hour), Run{ID: "r1", Point: "p1", Target: "m"}, attemptOf(Trouble{}, nil, tc.pod), []Report{r})
			if tc.reason == "" {
				if e.Failure != nil || len(e.Records) != 1 || !e.Finished.Equal(t0.Add(time.Minute)) {
					t.Errorf("%+v", e)
				}
				return
			}
			if e.Failure == nil || e.Failure.Reason != tc.reason || !strings.Contains(e.Failure.Message, tc.says) {
				t.Errorf("%+v, want %s: …%s…", e.Failure, tc.reason, tc.says)
			}
		})
	}
}

func TestJudgeDeadline(t *testing.T) {
	a := attemptOf(Trouble{}, &batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}, deletedPod())
	a.Pods[0].Status = exited(1).Status
	e := Judge(t0, Run{ID: "r1"}, a, []Report{{Pod: &a.Pods[0], Err: &contract.RecordError{Reason: contract.ReasonTruncated}}})
	if e.Failure == nil || e.Failure.Reason != "DeadlineExceeded" {
		t.Errorf("%+v", e.Failure)
	}
}
