package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
	"dbbench.dev/operator/runner/contract"
)

// act does what was decided, in the order in which it is safe to be interrupted: a
// result is stored before its Job is deleted, and the execution is on record before a
// Job of it exists.
func (s *scope) act(ctx context.Context, d *plan.Decision) error {
	if d.Begins(s.bench) {
		if err := s.writeStatus(ctx, d.Status); err != nil {
			return err
		}
	}
	if d.Protect {
		if err := s.patchFinalizer(ctx, controllerutil.AddFinalizer); err != nil {
			return err
		}
	}
	if err := s.record(ctx, d); err != nil {
		return err
	}
	if err := s.delete(ctx, d); err != nil {
		return err
	}
	if d.Create != nil {
		if err := s.create(ctx, *d.Create); err != nil {
			return err
		}
	}
	for _, c := range d.CleanUp {
		if err := s.cleanUp(ctx, c); err != nil {
			return err
		}
	}
	if d.Release {
		return s.release(ctx, d.Outcome)
	}
	return nil
}

// record stores what is known of runs that have ended.
func (s *scope) record(ctx context.Context, d *plan.Decision) error {
	for _, a := range d.Collect {
		if err := s.collect(ctx, a); err != nil {
			return err
		}
	}
	for _, e := range d.Store {
		if err := s.store(ctx, e); err != nil {
			return err
		}
	}
	if d.Report == nil {
		return nil
	}
	return s.writeReport(ctx, *d.Report)
}

func (s *scope) patchFinalizer(ctx context.Context, change func(client.Object, string) bool) error {
	before := s.bench.DeepCopy()
	if !change(s.bench, plan.Finalizer) {
		return nil
	}
	// The list is written as a whole, so it must not have changed meanwhile.
	return s.Client.Patch(ctx, s.bench, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// collect reads the reports of an attempt and stores what they amount to.
func (s *scope) collect(ctx context.Context, a plan.Attempt) error {
	runs, err := s.plans.expand(s.bench)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.ID != a.Run {
			continue
		}
		var reports []plan.Report
		for i := range a.Pods {
			report, err := s.report(ctx, &a.Pods[i], a)
			if err != nil {
				return fmt.Errorf("read the log of %s: %w", a.Pods[i].Name, err)
			}
			reports = append(reports, report)
		}
		return s.store(ctx, plan.Repeated(&s.bench.Spec, a.Number, plan.Judge(s.Now(), run, a, reports)))
	}
	return nil
}

// LogReader reads what a runner has written.
type LogReader interface {
	// Read returns the log of a pod's runner, cut off beyond contract.MaxRecordBytes.
	Read(ctx context.Context, namespace, pod string) (io.ReadCloser, error)
	// Tail returns the last lines of it.
	Tail(ctx context.Context, namespace, pod string) (io.ReadCloser, error)
}

const (
	// logPatience is how long a log that cannot be read is tried.
	logPatience = 2 * time.Minute
	// logDelay is how long after its end a runner's last lines may still be on their way.
	logDelay = 3 * time.Second
)

// report reads what a pod has left. An error is one that may pass.
func (s *scope) report(ctx context.Context, p *corev1.Pod, a plan.Attempt) (plan.Report, error) {
	record, err := s.readRecord(ctx, p, a)
	var refused *contract.RecordError
	age := s.Now().Sub(endOf(p))
	switch {
	case errors.As(err, &refused) && refused.Reason == contract.ReasonTruncated && age < logDelay,
		err != nil && !errors.As(err, &refused) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && age < logPatience:
		return plan.Report{}, err
	}
	return plan.Report{Pod: p, Record: record, Err: err}, nil
}

func endOf(p *corev1.Pod) time.Time {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return t.FinishedAt.Time
		}
	}
	return time.Time{}
}

func (s *scope) readRecord(ctx context.Context, p *corev1.Pod, a plan.Attempt) (*contract.Record, error) {
	text, err := s.Logs.Read(ctx, p.Namespace, p.Name)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	record, err := contract.ReadRecord(text, contract.Run{ID: a.Run, Execution: a.Execution, BenchmarkUID: string(s.bench.UID)})
	if err != nil {
		return nil, err
	}
	if err := results.Check(record); err != nil {
		return nil, &contract.RecordError{Reason: contract.ReasonMalformed, Detail: err.Error()}
	}
	return record, nil
}

func (s *scope) delete(ctx context.Context, d *plan.Decision) error {
	for _, j := range d.DeleteJobs {
		err := s.Client.Delete(ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &j.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the Job %s: %w", j.Name, err)
		}
	}
	for _, name := range d.DeleteMaps {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.bench.Namespace, Name: name}}
		if err := s.Client.Delete(ctx, cm); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the ConfigMap %s: %w", name, err)
		}
	}
	return nil
}

// create starts a run. That the API does not take its Job is final where it does not pass.
func (s *scope) create(ctx context.Context, run plan.Run) error {
	job, err := resources.RunJob(s.bench, s.bench.Status.Execution.ID, run, s.Image)
	if err != nil {
		return s.store(ctx, plan.Failed(s.Now(), run, v1alpha1.ReasonInvalidSpec, err.Error()))
	}
	if job.Spec.Template.Spec.Subdomain != "" {
		err = s.ensureService(ctx)
	}
	if err == nil {
		err = s.Client.Create(ctx, job)
	}
	if apierrors.IsAlreadyExists(err) {
		err = s.adopt(ctx, job)
	}
	if err == nil {
		s.refusals.forget(client.ObjectKeyFromObject(s.bench))
		s.started = true
		return nil
	}
	s.refused(job.Name, err)
	if e := s.cannotCreate.GiveUp(s.Now(), &s.bench.Spec, run); e != nil {
		s.cannotCreate = nil
		return s.store(ctx, *e)
	}
	return err
}

// refusedRun is the Job that the API refuses, and since when.
type refusedRun struct {
	job   string
	since time.Time
}

func (s *scope) refused(job string, err error) {
	key := client.ObjectKeyFromObject(s.bench)
	known, _ := s.refusals.get(key)
	if known.job != job {
		known = refusedRun{job, s.Now()}
		s.refusals.set(key, known)
	}
	s.cannotCreate = &plan.Refusal{Err: err, Since: known.since}
}

// ensureService makes the Service by which the pods of a run find each other, unless it
// is there. No other benchmark has the name.
func (s *scope) ensureService(ctx context.Context) error {
	service := resources.Service(s.bench)
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(service), &corev1.Service{})
	if apierrors.IsNotFound(err) {
		err = s.Client.Create(ctx, service)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the Service %s: %w", service.Name, err)
	}
	return nil
}

// adopt accepts a Job of the same name if it is the benchmark's own.
func (s *scope) adopt(ctx context.Context, job *batchv1.Job) error {
	var there batchv1.Job
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(job), &there); err != nil {
		return err
	}
	if metav1.IsControlledBy(&there, s.bench) && there.DeletionTimestamp == nil {
		return nil
	}
	return fmt.Errorf("a Job named %s is there that is not this benchmark's, or is being deleted", job.Name)
}

// cleanUp has data dropped. Where no Job can be made any more, as in a namespace that is
// being deleted, there is nothing left to do for a benchmark that is deleted.
func (s *scope) cleanUp(ctx context.Context, c plan.Cleanup) error {
	job, err := resources.CleanupJob(s.bench, c, s.Image)
	if err == nil {
		err = s.Client.Create(ctx, job)
	}
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case c.Execution != plan.FinalExecution:
		s.refused("drop "+c.Dataset+" in "+c.Target, err)
		return fmt.Errorf("drop data in %s: %w", c.Target, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), !isAPIError(err):
		return s.release(ctx, fmt.Sprintf("%s: %v", c.Target, err))
	}
	return err
}

func isAPIError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// release lets a deleted benchmark go.
func (s *scope) release(ctx context.Context, fault string) error {
	if fault != "" {
		s.warn("CleanupFailed", "CleanUp", "the data in the target may still be there: %s", fault)
	}
	return client.IgnoreNotFound(s.patchFinalizer(ctx, controllerutil.RemoveFinalizer))
}
