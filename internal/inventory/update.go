package inventory

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Changes receives the workloads that change. Its methods must not block.
type Changes interface {
	// WorkloadChanged is called after a workload has changed or was deleted, or after the settings of its namespace have changed.
	WorkloadChanged(workload.Key)
	// WorkloadRelinked is called after a change of a workload that may make it want other sources.
	WorkloadRelinked(workload.Key)
}

// Written records the state after a single write, from a watch event. A state that is older than the known one is dropped.
func (x *Index) Written(w *workload.Workload) { x.observe(w, true, w.Version) }

// Listed records a state from a list, the result of writes since a resourceVersion. That is empty, so unknown, for the first list.
func (x *Index) Listed(w *workload.Workload, since string) { x.observe(w, false, since) }

// observe records a state of a workload. Exact says that it is the result of a single write. Its differences were written at since or later.
func (x *Index) observe(w *workload.Workload, exact bool, since string) {
	x.update(w.Key(), exact, func(known *workload.Workload) (*workload.Workload, string) {
		if known != nil && known.ID.UID == w.ID.UID && !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, since
	})
}

// Answer records the state in the response to a patch, unless the workload was deleted meanwhile. Templated says that the patch set the pod template.
func (x *Index) Answer(w *workload.Workload, templated bool) {
	x.update(w.Key(), templated, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil || known.ID.UID != w.ID.UID || !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, known.Version // The response may include other clients' writes.
	})
}

// Keep replaces the known state of a workload by the result of keeping, which also keeps facts that the object lacks, unless that is nil.
func (x *Index) Keep(key workload.Key, keeping func(known *workload.Workload) *workload.Workload) {
	x.update(key, false, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil {
			return nil, ""
		}
		return keeping(known), known.Version
	})
}

// Uncount removes a roll that did not happen from the count of a workload. Stripped is the state that still counts it, before the correction, because
// a watch may have shown it and a count is usually kept even if another client removes it. Before is the state before the roll.
func (x *Index) Uncount(stripped, before *workload.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.workloads[stripped.Key()]; known != nil && known.ID.UID == stripped.ID.UID {
		x.workloads[stripped.Key()] = known.Uncounting(stripped, before)
	}
}

// changedIn reports a change of all workloads of a namespace.
func (x *Index) changedIn(namespace string) {
	for _, w := range x.All() {
		if w.ID.Namespace == namespace {
			x.options.Changes.WorkloadChanged(w.Key())
		}
	}
}

// update replaces the known state of a workload, nil if there is none, by the result of next, unless that is nil. Exact says that the new state is
// the result of a single write. Its differences were written at the resourceVersion that next returns, or later.
func (x *Index) update(key workload.Key, exact bool, next func(known *workload.Workload) (w *workload.Workload, since string)) {
	x.mu.Lock()
	earlier := x.workloads[key]
	w, since := next(earlier)
	if w == nil {
		x.mu.Unlock()
		return
	}
	w = x.joined(x.settled(w)).After(earlier, exact)
	relinks := w.LinkAfter(earlier, since)
	x.replace(earlier, w)
	x.mu.Unlock()
	x.options.Changes.WorkloadChanged(key)
	if relinks {
		x.options.Changes.WorkloadRelinked(key)
	}
	x.rejoin(earlier, w, since)
}

// Forget removes a deleted workload. It existed until since or later; empty means unknown.
func (x *Index) Forget(key workload.Key, uid, since string) {
	x.mu.Lock()
	earlier := x.workloads[key]
	if earlier == nil || earlier.ID.UID != uid {
		x.mu.Unlock()
		return
	}
	x.remove(earlier)
	x.mu.Unlock()
	x.options.Changes.WorkloadChanged(key)
	x.rejoin(earlier, nil, since)
}
