package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dbbench.dev/operator/api/v1alpha1"
	"dbbench.dev/operator/controllers/plan"
)

// locks are locks by name.
type locks struct{ byName sync.Map }

// lock takes the locks of all names, which are sorted, so that no two callers can wait
// for each other.
func (l *locks) lock(names []string) (unlock func()) {
	for _, name := range names {
		m, _ := l.byName.LoadOrStore(name, &sync.Mutex{})
		m.(*sync.Mutex).Lock()
	}
	return func() {
		for _, name := range names {
			m, _ := l.byName.Load(name)
			m.(*sync.Mutex).Unlock()
		}
	}
}

// plans keeps the runs of specs: thousands of points take a second to expand.
type plans struct{ memory[expansion] }

type expansion struct {
	uid        types.UID
	generation int64
	runs       []plan.Run
	err        error
}

func (p *plans) expand(b *v1alpha1.DBBenchmark) ([]plan.Run, error) {
	key := client.ObjectKeyFromObject(b)
	if e, ok := p.get(key); ok && e.uid == b.UID && e.generation == b.Generation {
		return e.runs, e.err
	}
	e := expansion{uid: b.UID, generation: b.Generation}
	e.runs, e.err = plan.Expand(&b.Spec)
	p.set(key, e)
	return e.runs, e.err
}

// memory is what is remembered of benchmarks between reconciliations.
type memory[T any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]T
}

func (m *memory[T]) get(key types.NamespacedName) (known T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok = m.known[key]
	return known, ok
}

func (m *memory[T]) set(key types.NamespacedName, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[types.NamespacedName]T{}
	}
	m.known[key] = v
}

func (m *memory[T]) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// forget drops what is remembered of a benchmark that is gone or at rest.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.plans.forget(key)
	r.results.forget(key)
	r.said.forget(key)
	r.refusals.forget(key)
}
