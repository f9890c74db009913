package project

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// index contains the resources that concern the projector. It is safe for concurrent use.
type index struct {
	digests digests
	// changed is called, without the lock, with each resource that may need processing.
	changed func(key)

	mu      sync.Mutex
	targets map[key]*target
	// refused has the generations of resources that the API server did not accept with the values.
	refused map[key]int64
}

func newIndex(digests digests, changed func(key)) *index {
	return &index{digests: digests, changed: changed, targets: make(map[key]*target), refused: make(map[key]int64)}
}

// get returns a resource, or nil if it does not exist or does not concern the projector.
func (x *index) get(k key) *target {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.targets[k]
}

// all returns the resources for which is returns true.
func (x *index) all(is func(*target) bool) []key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []key
	for k, t := range x.targets {
		if is(t) {
			list = append(list, k)
		}
	}
	return list
}

func (x *index) put(t *target) {
	x.mu.Lock()
	before := x.targets[t.key()]
	if t.concerns() {
		x.targets[t.key()] = t
	} else {
		delete(x.targets, t.key())
		delete(x.refused, t.key())
	}
	generation, refused := x.refused[t.key()]
	x.mu.Unlock()
	if before == nil && t.concerns() || before != nil && (!t.isLike(before) || refused && generation != t.generation) {
		x.changed(t.key())
	}
}

// wrote stores the state of a resource after the projector's write, so that its watch event does not count as a change. It does nothing if the watch
// has already seen another state. If another manager owns the fields, too, the resource is queued again: writing values that the fields already had
// has made the projector a second owner.
func (x *index) wrote(from *target, object *unstructured.Unstructured) {
	now := x.digests.read(from.kind, object)
	x.mu.Lock()
	// The watch removes a resource without wishes, together with its item.
	isNews := x.targets[from.key()] == from && now.concerns()
	if isNews {
		x.targets[from.key()] = now
	}
	x.mu.Unlock()
	if isNews && len(now.contested()) > 0 {
		x.changed(from.key())
	}
}

// settle records the result for a resource. If the API server refused it, the resource is queued again at its next generation, because
// validation or a webhook may accept that one.
func (x *index) settle(k key, r result) {
	x.mu.Lock()
	t := x.targets[k]
	delete(x.refused, k)
	// Without a generation, the reason is that a Secret may not be read.
	refused := t != nil && r.reason.refused() && r.generation > 0
	if refused {
		x.refused[k] = r.generation
	}
	missed := refused && t.generation > r.generation
	x.mu.Unlock()
	if missed {
		x.changed(k)
	}
}

func (x *index) remove(k key) {
	x.mu.Lock()
	_, known := x.targets[k]
	delete(x.targets, k)
	delete(x.refused, k)
	x.mu.Unlock()
	if known {
		x.changed(k)
	}
}

// sink takes the resources of one kind in one namespace into the index.
type sink struct {
	index     *index
	kind      *kind
	namespace string
	listed    func()
}

// Reduce implements kube.Sink.
func (s *sink) Reduce(object runtime.Object) (*target, bool) {
	resource, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return s.index.digests.read(s.kind, resource), true
}

// Put implements kube.Sink.
func (s *sink) Put(_ context.Context, t *target) { s.index.put(t) }

// Drop implements kube.Sink.
func (s *sink) Drop(_ context.Context, t *target) { s.index.remove(t.key()) }

// Replace implements kube.Sink.
func (s *sink) Replace(_ context.Context, list []*target, _ string) {
	found := make(map[key]bool, len(list))
	for _, t := range list {
		found[t.key()] = true
		s.index.put(t)
	}
	for _, k := range s.index.all(func(t *target) bool { return t.kind == s.kind && t.namespace == s.namespace }) {
		if !found[k] {
			s.index.remove(k)
		}
	}
	s.listed()
}
