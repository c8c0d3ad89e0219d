package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
	"dbbench.dev/operator/controllers/resources"
	"dbbench.dev/operator/results"
)

// maxShard is the size in bytes up to which a ConfigMap is filled. The API refuses
// one of more than 1 MiB.
const maxShard = 900 << 10

// shard is a ConfigMap of the current execution, as it was last read.
type shard struct {
	name            string
	uid             types.UID
	resourceVersion string
	size            int
	envelopes       []results.Envelope
}

// knownResults are the ConfigMaps of a benchmark as they were last seen.
type knownResults struct {
	uid       types.UID
	execution string
	maps      []plan.ResultMap
	shards    []shard
	memo      *results.Memo
}

// resultCache keeps the results of benchmarks that are under way, so that ConfigMaps
// are read once and not watched. Only this process writes them; before anything is
// done that cannot be undone, their versions are compared with the API's.
type resultCache struct{ memory[*knownResults] }

func (c *resultCache) of(b *v1alpha1.DBBenchmark, execution string) *knownResults {
	k, ok := c.get(client.ObjectKeyFromObject(b))
	if !ok || k.uid != b.UID || k.execution != execution {
		return nil
	}
	return k
}

// observeResults returns the results of the current execution: those last seen, or
// with live those that the API has now.
func (s *scope) observeResults(ctx context.Context, live bool) (*knownResults, error) {
	execution := plan.ExecutionID(s.bench)
	before := s.results.of(s.bench, execution)
	if before != nil && !live {
		return before, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	kept, err := labels.NewRequirement(resources.LabelPurpose, selection.In, []string{resources.PurposeResults, resources.PurposeReport})
	if err != nil {
		return nil, err
	}
	own := labels.SelectorFromSet(labels.Set{resources.LabelUID: string(s.bench.UID)}).Add(*kept)
	if err := s.Live.List(ctx, list, client.InNamespace(s.bench.Namespace), client.MatchingLabelsSelector{Selector: own}); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	now := &knownResults{uid: s.bench.UID, execution: execution, memo: &results.Memo{}}
	if before != nil {
		now.memo = before.memo
	}
	for _, m := range list.Items {
		of := m.Labels[resources.LabelExecution]
		isReport := m.Labels[resources.LabelPurpose] == resources.PurposeReport
		generation, _ := strconv.ParseInt(m.Annotations[resources.AnnotationGeneration], 10, 64) // 0 is none
		now.maps = append(now.maps, plan.ResultMap{
			Name: m.Name, Execution: of, Created: m.CreationTimestamp.Time, Report: isReport, Generation: generation,
		})
		if of != execution || isReport {
			continue
		}
		sh, err := s.readShard(ctx, before, m)
		if err != nil {
			return nil, err
		}
		now.shards = append(now.shards, sh)
	}
	s.results.set(client.ObjectKeyFromObject(s.bench), now)
	return now, nil
}

// readShard reads a ConfigMap unless it is known in this version.
func (s *scope) readShard(ctx context.Context, known *knownResults, m metav1.PartialObjectMetadata) (shard, error) {
	if known != nil {
		for _, sh := range known.shards {
			if sh.uid == m.UID && sh.resourceVersion == m.ResourceVersion {
				return sh, nil
			}
		}
	}
	var cm corev1.ConfigMap
	if err := s.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, &cm); err != nil {
		return shard{}, err
	}
	sh := shard{name: cm.Name, uid: cm.UID, resourceVersion: cm.ResourceVersion}
	for key, text := range cm.Data {
		sh.size += len(key) + len(text)
		e, err := results.Decode(key, text)
		if err != nil {
			s.warn("ResultsUnreadable", "Collect", "the ConfigMap %s was changed: %v; the run is done again", cm.Name, err)
			continue
		}
		sh.envelopes = append(sh.envelopes, e.Trimmed())
	}
	return sh, nil
}

// store writes a run's result into the ConfigMaps. That it is not there yet was seen
// live, and the version of the ConfigMap says that it is still so.
func (s *scope) store(ctx context.Context, e results.Envelope) error {
	e.Kubernetes = s.Kubernetes
	text, err := e.Encode()
	if err != nil {
		return fmt.Errorf("result of %s: %w", e.Run, err)
	}
	if len(text) > maxShard {
		e.Records = nil
		e.Failure = &results.Failure{Reason: v1alpha1.ReasonInvalidRecord,
			Message: fmt.Sprintf("the record takes %d bytes, more than the %d that a ConfigMap has room for", len(text), maxShard)}
		if text, err = e.Encode(); err != nil {
			return fmt.Errorf("result of %s: %w", e.Run, err)
		}
	}
	if e.Lost > 0 {
		s.warn("RunRepeated", "Run", "the run %s was lost and is repeated (%d of %d): %s", e.Run, e.Lost, s.bench.Spec.Retries, e.Failure.Message)
	}
	key := e.Key()
	known := s.results.of(s.bench, plan.ExecutionID(s.bench))
	if known == nil {
		return fmt.Errorf("result of %s: the earlier results are not known", e.Run)
	}
	if n := len(known.shards); n > 0 && known.shards[n-1].size+len(key)+len(text) <= maxShard {
		last := known.shards[n-1]
		cm, err := s.append(ctx, last, key, text)
		if err == nil {
			s.results.set(client.ObjectKeyFromObject(s.bench), known.with(known.shards[:n-1], last, cm, key, text))
		}
		return err
	}
	cm := resources.Results(s.bench, known.execution, nextShard(s.bench, known))
	cm.Data[key] = text
	if err := s.Client.Create(ctx, cm); err != nil {
		return err
	}
	s.results.set(client.ObjectKeyFromObject(s.bench), known.with(known.shards, shard{name: cm.Name}, cm, key, text))
	return nil
}

// with is what is known after a key was added to a shard that follows others, so that
// what was just written need not be read. What the API does not confirm in this very
// version is read all the same.
func (k *knownResults) with(others []shard, sh shard, written *corev1.ConfigMap, key, text string) *knownResults {
	e, err := results.Decode(key, text)
	if err != nil {
		return k
	}
	sh.uid, sh.resourceVersion = written.UID, written.ResourceVersion
	sh.size += len(key) + len(text)
	sh.envelopes = append(slices.Clip(sh.envelopes), e.Trimmed())
	next := *k
	next.shards = append(slices.Clip(others), sh)
	return &next
}

// nextShard is the first number whose name is free.
func nextShard(b *v1alpha1.DBBenchmark, k *knownResults) int {
	for i := len(k.shards); ; i++ {
		name := resources.ResultsName(b, k.execution, i)
		if !slices.ContainsFunc(k.maps, func(m plan.ResultMap) bool { return m.Name == name }) {
			return i
		}
	}
}

// append adds a key to a ConfigMap without sending what it already holds.
func (s *scope) append(ctx context.Context, sh shard, key, text string) (*corev1.ConfigMap, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": sh.resourceVersion},
		"data":     map[string]string{key: text},
	})
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.bench.Namespace, Name: sh.name}}
	return cm, s.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
}
