package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/runner/contract"
)

const nodeName = "node"

// kubelet stands for the Job controller, the node and the garbage collector: a Job gets
// a pod that has ended already, and takes it along when it goes.
type kubelet struct {
	client.Client
	queue workqueue.TypedInterface[change]
}

// change is a Job that came or went.
type change struct {
	job  *batchv1.Job
	gone bool
}

func newKubelet(c client.Client) *kubelet {
	return &kubelet{Client: c, queue: workqueue.NewTyped[change]()}
}

func (k *kubelet) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { k.queue.Add(change{job: o.(*batchv1.Job)}) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			k.queue.Add(change{job: o.(*batchv1.Job), gone: true})
		},
	}
}

func (k *kubelet) work(ctx context.Context) error {
	defer context.AfterFunc(ctx, k.queue.ShutDown)()
	for {
		c, quit := k.queue.Get()
		if quit {
			return nil
		}
		if err := k.follow(ctx, c); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the pod of %s: %w", c.job.Name, err)
		}
		k.queue.Done(c)
	}
}

func (k *kubelet) follow(ctx context.Context, c change) error {
	p := &corev1.Pod{ObjectMeta: *c.job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *c.job.Spec.Template.Spec.DeepCopy()}
	p.Namespace, p.Name, p.Spec.NodeName = c.job.Namespace, c.job.Name+"-0", nodeName
	if c.gone {
		return client.IgnoreNotFound(k.Delete(ctx, p, client.GracePeriodSeconds(0)))
	}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if err := k.Create(ctx, p); err != nil {
		return err
	}
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: plan.RunnerContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()},
	}}}
	return k.Status().Update(ctx, p)
}

// serveLog answers the API server's GET /containerLogs/NAMESPACE/POD/CONTAINER.
func (k *kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	var pod corev1.Pod
	err := k.Get(r.Context(), client.ObjectKey{Namespace: parts[1], Name: parts[2]}, &pod)
	if err == nil {
		var spec *contract.RunSpec
		if spec, err = contract.DecodeRunSpec([]byte(pod.Annotations[resources.AnnotationRunSpec])); err == nil {
			_, err = w.Write(record(spec))
		}
	}
	if err != nil {
		status := http.StatusInternalServerError
		if apierrors.IsNotFound(err) {
			status = http.StatusNotFound
		}
		http.Error(w, err.Error(), status)
	}
}

// record is what a runner reports of a run that went well.
func record(s *contract.RunSpec) []byte {
	h := hdrhistogram.New(1000, time.Hour.Nanoseconds(), 3)
	const events = 100
	for i := range int64(events) {
		_ = h.RecordValue((i + 1) * 10000)
	}
	histogram, _ := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	var text bytes.Buffer
	enc := contract.NewEncoder(&text)
	err := errors.Join(
		enc.Start(contract.Start{Run: s.Run.ID, Execution: s.Run.Execution, BenchmarkUID: s.Run.BenchmarkUID, RunnerVersion: "simulated"}),
		enc.Environment(contract.Environment{ServerVersion: "10.11", ServerFlavor: "MariaDB", Runner: contract.RunnerUsage{ThrottledNanos: -1}}),
		enc.Operation(contract.Operation{Name: "insert", Count: events, SumNanos: 50500000, MinNanos: 10000, MaxNanos: 1000000, Histogram: string(histogram)}),
		enc.Result(contract.Result{Outcome: contract.OutcomeSucceeded, Clients: s.Load.Clients, MeasureStartUnixNanos: 1,
			ElapsedNanos: time.Second.Nanoseconds(), Events: events, Attempts: events, Writes: events}),
		enc.End(),
	)
	if err != nil {
		panic(err) // a buffer takes all
	}
	return text.Bytes()
}
