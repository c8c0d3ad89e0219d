package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/runner/contract"
)

// seenProgress is what a run under way has said last, and when it was asked: its log is
// looked at no more often than it is worth.
type seenProgress struct {
	at   time.Time
	said *plan.Progress
}

// progress is what the run under way has said last. That a log cannot be read is no
// error: it is read again, and in the end as a whole.
func (s *scope) progress(ctx context.Context, attempts []plan.Attempt) *plan.Progress {
	a := plan.UnderWay(s.bench, attempts)
	if a == nil {
		return nil
	}
	key, now := client.ObjectKeyFromObject(s.bench), s.Now()
	seen, _ := s.said.get(key)
	if p := seen.said; p == nil || p.Run != a.Run || p.Attempt != a.Number {
		seen = seenProgress{at: a.Job.CreationTimestamp.Time}
	}
	if now.Sub(seen.at) < plan.ProgressEvery(*a) {
		return seen.said
	}
	said := &plan.Progress{Run: a.Run, Attempt: a.Number}
	var all []contract.Progress
	for i := range a.Pods {
		if p := s.lastProgress(ctx, &a.Pods[i]); p != nil {
			all = append(all, *p)
		}
	}
	said.Add(all)
	s.said.set(key, seenProgress{now, said})
	return said
}

// lastProgress is the last line of progress in a pod's log, nil where there is none.
func (s *scope) lastProgress(ctx context.Context, p *corev1.Pod) *contract.Progress {
	text, err := s.Logs.Tail(ctx, p.Namespace, p.Name)
	if err == nil {
		defer text.Close()
		var last *contract.Progress
		if last, err = contract.ReadProgress(text); err == nil {
			return last
		}
	}
	log.FromContext(ctx).V(1).Info("the progress of a pod could not be read", "pod", p.Name, "reason", fmt.Sprint(err))
	return nil
}
