package actuate

import "slices"

// turns queues workloads by namespace. The namespaces take turns, so that however many workloads one has, each delays another's by one of them.
type turns struct {
	queued map[*pending]struct{}
	// waiting are the workloads of each namespace, in the order in which they came.
	waiting map[string][]*pending
	// order has each namespace that has any once, the next one first.
	order []string
}

func newTurns() turns {
	return turns{queued: make(map[*pending]struct{}), waiting: make(map[string][]*pending)}
}

// has reports whether a workload is queued.
func (t *turns) has(p *pending) bool {
	_, queued := t.queued[p]
	return queued
}

// push adds a workload. One that is queued keeps its place.
func (t *turns) push(p *pending) {
	if t.has(p) {
		return
	}
	t.queued[p] = struct{}{}
	namespace := p.key.Namespace
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], p)
}

// pop removes and returns the first workload of the next namespace for which may returns true, or nil if there is none. That namespace is then the
// last in turn. It asks no namespace twice.
func (t *turns) pop(may func(namespace string) bool) *pending {
	for i, namespace := range t.order {
		if !may(namespace) {
			continue
		}
		list := t.waiting[namespace]
		p := list[0]
		list[0] = nil
		delete(t.queued, p)
		t.order = slices.Delete(t.order, i, i+1)
		if len(list) == 1 {
			delete(t.waiting, namespace)
			return p
		}
		t.waiting[namespace] = list[1:]
		t.order = append(t.order, namespace)
		return p
	}
	return nil
}

// remove takes a workload out, if it is queued.
func (t *turns) remove(p *pending) {
	if !t.has(p) {
		return
	}
	delete(t.queued, p)
	namespace := p.key.Namespace
	list := t.waiting[namespace]
	i := slices.Index(list, p)
	if t.waiting[namespace] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(t.waiting, namespace)
		t.order = slices.DeleteFunc(t.order, func(turn string) bool { return turn == namespace })
	}
}
