package inventory

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Changes hears which workloads change. Its methods must not block.
type Changes interface {
	// WorkloadChanged is called after a workload, or what its namespace says, has changed or gone.
	WorkloadChanged(workload.Key)
	// WorkloadRelinked is called after a workload may have come to want other sources.
	WorkloadRelinked(workload.Key)
}

// Written records the state that one write has led to, as an event of a watch shows it. A state that is older than the known one is dropped.
func (x *Index) Written(w *workload.Workload) { x.observe(w, true, w.Version) }

// Listed is like Written, for a state from a list, the result of writes since a resourceVersion, which is empty for the first list: then unknown.
func (x *Index) Listed(w *workload.Workload, since string) { x.observe(w, false, since) }

// observe records a state of a workload, which is the result of one write if exact. What differs from the known state was written at since or later.
func (x *Index) observe(w *workload.Workload, exact bool, since string) {
	x.update(w.Key(), exact, func(known *workload.Workload) (*workload.Workload, string) {
		if known != nil && known.ID.UID == w.ID.UID && !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, since
	})
}

// Answer records the state in the response to a patch, which sets the pod template if templated, unless the workload was deleted meanwhile.
func (x *Index) Answer(w *workload.Workload, templated bool) {
	x.update(w.Key(), templated, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil || known.ID.UID != w.ID.UID || !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, known.Version // The response may include what others have written since.
	})
}

// Keep replaces the known state of a workload by one that keeps what is not written on it, unless that is nil.
func (x *Index) Keep(key workload.Key, keeping func(known *workload.Workload) *workload.Workload) {
	x.update(key, false, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil {
			return nil, ""
		}
		return keeping(known), known.Version
	})
}

// Uncount removes from the count of a workload a roll that did not happen. Stripped is the state that still counts it, before the correction: the
// watch may have shown it, and a count that someone removes is usually kept nevertheless. Before is the state before the roll.
func (x *Index) Uncount(stripped, before *workload.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.workloads[stripped.Key()]; known != nil && known.ID.UID == stripped.ID.UID {
		x.workloads[stripped.Key()] = known.Uncounting(stripped, before)
	}
}

// changedIn has all workloads of a namespace reviewed.
func (x *Index) changedIn(namespace string) {
	for _, w := range x.All() {
		if w.ID.Namespace == namespace {
			x.options.Changes.WorkloadChanged(w.Key())
		}
	}
}

// update replaces the known state of a workload, nil if there is none, by the one that next returns, unless that is nil. The new state is the result
// of one write if exact. What differs from the known one was written at the resourceVersion that next returns, or later.
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

// Forget removes a workload that was deleted, and was there until a resourceVersion or later, which is empty if that is not known.
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
