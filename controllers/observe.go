package controllers

import (
	"context"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
)

// observe gathers what plan.Next decides by: from the cache, or live from the API. Who
// else is on the server always comes from the cache: see decide.
func (s *scope) observe(ctx context.Context, live bool) (plan.Observed, error) {
	reader := client.Reader(s.Client)
	if live {
		reader = s.Live
	}
	o := plan.Observed{CannotCreate: s.cannotCreate, NoReport: s.noReport}
	o.Runs, o.SpecError = s.plans.expand(s.bench)
	if err := s.observeAttempts(ctx, reader, &o); err != nil {
		return o, err
	}
	if !s.bench.DeletionTimestamp.IsZero() {
		return o, nil
	}
	o.Progress = s.progress(ctx, o.Attempts)
	known, err := s.observeResults(ctx, live)
	if err != nil {
		return o, err
	}
	o.Maps, o.Memo = known.maps, known.memo
	o.Results, o.Losses = known.byRun()
	if plan.WantsBaseline(s.bench, &o) {
		if o.Baseline, o.BaselineError, err = s.baseline(ctx); err != nil {
			return o, err
		}
	}
	if o.Queue, err = s.queue(ctx); err != nil {
		return o, err
	}
	o.Occupants, err = s.occupants(ctx, s.Client)
	return o, err
}

// jobs are the benchmark's own.
func (s *scope) jobs(ctx context.Context, reader client.Reader) ([]batchv1.Job, error) {
	var list batchv1.JobList
	err := reader.List(ctx, &list, client.InNamespace(s.bench.Namespace), client.MatchingLabels{resources.LabelUID: string(s.bench.UID)})
	// A label can be forged, an owner reference only by who may write Jobs anyway.
	return slices.DeleteFunc(list.Items, func(j batchv1.Job) bool { return !metav1.IsControlledBy(&j, s.bench) }), err
}

func (s *scope) observeAttempts(ctx context.Context, reader client.Reader, o *plan.Observed) error {
	jobs, err := s.jobs(ctx, reader)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	err = reader.List(ctx, &pods, client.InNamespace(s.bench.Namespace), client.MatchingLabels{resources.LabelUID: string(s.bench.UID)})
	if err != nil {
		return err
	}
	for _, a := range attempts(jobs, pods.Items) {
		if plan.WantsTrouble(s.Now(), a.Attempt) {
			if a.Trouble, err = s.trouble(ctx, a.Attempt); err != nil {
				return err
			}
		}
		if a.purpose == resources.PurposeCleanup {
			o.Cleanups = append(o.Cleanups, a.Attempt)
		} else {
			o.Attempts = append(o.Attempts, a.Attempt)
		}
	}
	return nil
}

// attempt is a plan.Attempt with what says whose it is.
type attempt struct {
	plan.Attempt
	purpose, owner string
}

// attemptOf reads what the labels of a Job, and of its pods, say of it. Who forges them
// can only harm what is his own.
func attemptOf(labels map[string]string) plan.Attempt {
	number, err := strconv.ParseInt(labels[resources.LabelAttempt], 10, 32)
	if err != nil {
		number = 0
	}
	a := plan.Attempt{Execution: labels[resources.LabelExecution], Number: int32(number)}
	if labels[resources.LabelPurpose] == resources.PurposeCleanup {
		a.Target, a.Dataset = labels[resources.LabelTarget], labels[resources.LabelDataset]
	} else {
		a.Run = labels[resources.LabelRun]
	}
	return a
}

// attempts puts pods to their Jobs. A pod whose Job is gone makes an attempt of its own.
func attempts(jobs []batchv1.Job, pods []corev1.Pod) []attempt {
	var all []attempt
	index := map[string]int{}
	add := func(key string, o metav1.Object) int {
		index[key] = len(all)
		l := o.GetLabels()
		all = append(all, attempt{
			Attempt: attemptOf(l),
			purpose: l[resources.LabelPurpose], owner: o.GetNamespace() + "/" + l[resources.LabelBenchmark],
		})
		return index[key]
	}
	for i := range jobs {
		j := &jobs[i]
		all[add(string(j.UID), j)].Job = j
	}
	for i := range pods {
		p := &pods[i]
		key := string(p.UID)
		if owner := metav1.GetControllerOf(p); owner != nil {
			key = string(owner.UID)
		}
		at, ok := index[key]
		if !ok {
			at = add(key, p)
		}
		all[at].Pods = append(all[at].Pods, *p)
	}
	return all
}

// trouble reads the warnings about an attempt's pods and, if some are missing, its Job.
func (s *scope) trouble(ctx context.Context, a plan.Attempt) ([]plan.Trouble, error) {
	var subjects []string
	if plan.LacksPods(a) {
		subjects = append(subjects, string(a.Job.UID))
	}
	for _, p := range a.Pods {
		subjects = append(subjects, string(p.UID))
	}
	const enough = 50
	var all []plan.Trouble
	for _, uid := range subjects {
		var list corev1.EventList
		err := s.Live.List(ctx, &list, client.InNamespace(s.bench.Namespace), client.Limit(enough),
			client.MatchingFields{"involvedObject.uid": uid, "type": corev1.EventTypeWarning})
		if err != nil {
			return nil, err
		}
		for _, e := range list.Items {
			all = append(all, plan.Trouble{Reason: e.Reason, Message: e.Message})
		}
	}
	return all, nil
}

// indexServers finds the benchmarks of a server.
const indexServers = "servers"

// neighbours are the other benchmarks that share a server with one.
func neighbours(ctx context.Context, cached client.Reader, b *v1alpha1.DBBenchmark) ([]v1alpha1.DBBenchmark, error) {
	var all []v1alpha1.DBBenchmark
	seen := map[client.ObjectKey]bool{client.ObjectKeyFromObject(b): true}
	for _, key := range plan.ServerKeys(b) {
		var list v1alpha1.DBBenchmarkList
		if err := cached.List(ctx, &list, client.MatchingFields{indexServers: key}); err != nil {
			return nil, err
		}
		for _, other := range list.Items {
			if k := client.ObjectKeyFromObject(&other); !seen[k] {
				seen[k] = true
				all = append(all, other)
			}
		}
	}
	return all, nil
}

// queue are the claims of others to the benchmark's servers.
func (s *scope) queue(ctx context.Context) ([]plan.Claim, error) {
	others, err := neighbours(ctx, s.Client, s.bench)
	var claims []plan.Claim
	for i := range others {
		if c, ok := plan.ClaimOf(&others[i]); ok {
			claims = append(claims, c)
		}
	}
	return claims, err
}

// occupants are other benchmarks of which a run may be at work on the servers.
func (s *scope) occupants(ctx context.Context, reader client.Reader) ([]string, error) {
	servers, err := labels.NewRequirement(resources.LabelServer, selection.In, plan.ServerKeys(s.bench))
	if err != nil {
		return nil, err
	}
	others, err := labels.NewRequirement(resources.LabelUID, selection.NotEquals, []string{string(s.bench.UID)})
	if err != nil {
		return nil, err
	}
	where := []client.ListOption{
		client.InNamespace(s.Namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*servers, *others)},
	}
	var jobs batchv1.JobList
	if err := reader.List(ctx, &jobs, where...); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, where...); err != nil {
		return nil, err
	}
	var busy []string
	for _, a := range attempts(jobs.Items, pods.Items) {
		if !a.Quiet() {
			busy = append(busy, a.owner)
		}
	}
	slices.Sort(busy)
	return slices.Compact(busy), nil
}

// byRun are the results of the current execution by run, and how often runs were lost
// that are to be repeated.
func (k *knownResults) byRun() (all map[string]results.Envelope, losses map[string]int32) {
	all, losses = map[string]results.Envelope{}, map[string]int32{}
	for _, s := range k.shards {
		for _, e := range s.envelopes {
			if e.Lost > 0 {
				losses[e.Run] = max(losses[e.Run], e.Lost)
				continue
			}
			all[e.Run] = e
		}
	}
	return all, losses
}
