package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"dbbench.dev/operator/runner/contract"
)

// several is an attempt of as many pods, and of some that are missing.
func several(missing int, pods ...corev1.Pod) Attempt {
	a := attemptOf(Trouble{}, nil, pods...)
	for i := range a.Pods {
		a.Pods[i].Name = fmt.Sprintf("pod-%d", i)
	}
	a.Job.Spec.Completions = new(int32(len(pods) + missing))
	return a
}

func disruptedPod(p corev1.Pod, reason string) corev1.Pod {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: "why"})
	return p
}

func deleted(p corev1.Pod) corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: t0}
	return p
}

func oomKilled() corev1.Pod {
	return pod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}})
}

// TestDiagnoseReplicas: one pod that is lost or does not come ends the run of all, by its
// name and with the reason.
func TestDiagnoseReplicas(t *testing.T) {
	with := func(a Attempt, change func(*Attempt)) Attempt { change(&a); return a }
	failing := func(a *Attempt) {
		a.Job.Status.Failed = 1
		a.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	}
	quota := func(a *Attempt) {
		a.Trouble = []Trouble{{"FailedCreate", `Error creating: pods "x" is forbidden: exceeded quota: small`}}
	}
	for _, tc := range []struct {
		name   string
		age    time.Duration
		a      Attempt
		state  state
		reason string
		says   string
	}{
		{"all run", time.Minute, several(0, running(), running()), underWay, "", ""},
		{"one has ended", time.Minute, several(0, running(), exited(0)), underWay, "", ""},
		{"all have ended", time.Minute, several(0, exited(0), exited(0)), over, "", ""},
		{"one is not there yet", time.Second, several(1, running()), underWay, "", ""},
		{"one is not there for long", 25 * time.Second, several(1, running()), held, "Pending", "1 of its 2 pods"},
		{"the quota allows one", time.Minute, with(several(1, running()), quota), held, "QuotaExceeded", "quota"},
		{"the quota allows one, for long", 3 * time.Minute, with(several(1, running()), quota), broken, "QuotaExceeded", "quota"},
		{"one fits nowhere", time.Minute, several(0, running(), unschedulable()), held, "Unschedulable", "pod-1 fits on no node"},
		{"one fits nowhere, for long", 3 * time.Minute, several(0, running(), unschedulable()), broken, "Unschedulable", "pod-1 fits on no node: 0/3 nodes"},
		{"one is evicted", time.Minute, several(0, running(), disruptedPod(running(), "EvictionByEvictionAPI")), broken, "RunnerLost", "pod-1, one of the run's 2, was taken away: EvictionByEvictionAPI"},
		{"one is preempted", time.Minute, several(0, deleted(disruptedPod(running(), "PreemptionByScheduler")), running()), broken, "RunnerLost", "pod-0, one of the run's 2, was taken away: PreemptionByScheduler"},
		{"one is deleted", time.Minute, several(0, running(), deleted(running())), broken, "RunnerLost", "pod-1, one of the run's 2, was taken away: it was deleted"},
		{"one has failed, and the Job deletes the other", time.Minute, with(several(0, exited(1), deleted(running())), failing), underWay, "", ""},
		{"one is gone, and the Job deletes the other", time.Minute, with(several(1, deleted(running())), failing), underWay, "", ""},
		{"one has failed, the other is gone", time.Minute, with(several(1, exited(1)), func(a *Attempt) {
			a.Job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}), over, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := diagnose(t0.Add(tc.age), tc.a, 110*time.Second)
			if d.state != tc.state || d.reason != tc.reason || !strings.Contains(d.message, tc.says) {
				t.Errorf("state %d, %s: %s", d.state, d.reason, d.message)
			}
		})
	}
}

// TestJudgeReplicas: when one pod fails the others say so, too; the cause is what counts.
func TestJudgeReplicas(t *testing.T) {
	good := func(replica int32) Report {
		p := exited(0)
		return Report{Pod: &p, Record: &contract.Record{Start: contract.Start{Replica: replica}, Result: contract.Result{Outcome: contract.OutcomeSucceeded, Events: 1}}}
	}
	says := func(replica int32, class contract.Class, p corev1.Pod) Report {
		return Report{Pod: &p, Record: &contract.Record{Start: contract.Start{Replica: replica},
			Result: contract.Result{Outcome: contract.OutcomeFailed, Failure: &contract.Failure{Class: class, Message: "says " + string(class)}}}}
	}
	silentPod := func(p corev1.Pod) Report {
		return Report{Pod: &p, Err: &contract.RecordError{Reason: contract.ReasonTruncated, Detail: "the log ends"}}
	}
	for _, tc := range []struct {
		name    string
		reports []Report
		missing int
		reason  string
		says    string
	}{
		{"all went well", []Report{good(1), good(0)}, 0, "", ""},
		{"a report is missing", []Report{good(1)}, 1, "RunnerLost", "1 of the run's 2 pods"},
		{"two reports of one replica", []Report{good(0), good(0)}, 0, "InvalidRecord", "replicas 0 and 0"},
		{"the cause", []Report{says(0, contract.ClassPeerFailed, exited(1)), says(1, contract.ClassWorkloadFailed, exited(1))}, 0, "WorkloadFailed", ""},
		{"out of memory", []Report{says(0, contract.ClassReplicaLost, exited(1)), silentPod(oomKilled())}, 0, "RunnerOOMKilled", "pod-1"},
		{"evicted", []Report{says(0, contract.ClassReplicaLost, exited(1)), says(1, contract.ClassInterrupted, disruptedPod(exited(1), "TerminationByKubelet"))}, 0, "RunnerLost", "pod-1 was taken away during the run: TerminationByKubelet"},
		{"killed without a word", []Report{says(0, contract.ClassReplicaLost, exited(1)), silentPod(exited(137))}, 0, "InvalidRecord", "137"},
		{"never came", []Report{says(0, contract.ClassReplicaLost, exited(1)), says(1, contract.ClassPeerFailed, exited(1))}, 1, "RunnerLost", "says ReplicaLost"},
		{"one lost, the other deleted by the Job", []Report{says(0, contract.ClassReplicaLost, exited(1)), says(1, contract.ClassInterrupted, deleted(exited(1)))}, 0, "RunnerLost", "says ReplicaLost"},
		{"one failed, the other deleted by the Job", []Report{says(0, contract.ClassTargetUnreachable, exited(1)), silentPod(deleted(exited(137)))}, 0, "TargetUnreachable", ""},
		{"only the others are left", []Report{says(1, contract.ClassPeerFailed, exited(1))}, 1, "PeerFailed", "says PeerFailed"},
		{"one succeeded", []Report{good(0), says(1, contract.ClassWorkloadFailed, exited(1))}, 0, "WorkloadFailed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, r := range tc.reports {
				pods = append(pods, *r.Pod)
			}
			a := several(tc.missing, pods...)
			for i := range tc.reports {
				tc.reports[i].Pod = &a.Pods[i]
			}
			e := Judge(t0, Run{ID: "r1"}, a, tc.reports)
			switch {
			case tc.reason == "" && (e.Failure != nil || len(e.Records) != 2 || e.Records[0].Start.Replica != 0):
				t.Errorf("%+v", e)
			case tc.reason != "" && (e.Failure == nil || e.Failure.Reason != tc.reason || !strings.Contains(e.Failure.Message, tc.says)):
				t.Errorf("%+v", e.Failure)
			}
		})
	}
}
