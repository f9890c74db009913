package actuate

import (
	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// slots bounds the rollouts in progress, in the cluster and in each namespace.
type slots struct {
	*term
	// taken has the slots of the rollouts in progress. They are counted when somebody asks, if known is false.
	taken *fair.Slots
	known bool
}

// areLimited reports whether there is a limit: each is none if it is zero.
func (s *slots) areLimited() bool {
	return s.options.MaxRollouts > 0 || s.options.MaxRolloutsPerNamespace > 0
}

// has reports whether the rollout of a workload has a slot: it replaces pods, or soon will.
func (s *slots) has(key workload.Key) bool {
	return s.following.replaces(key) || s.patcher.replaces(key)
}

// needs reports whether a workload takes a slot when it is rolled. A workload without pods takes none. One that is being rolled already has a slot
// and need not wait for another, because a further change may be what its pods need to start.
func (s *slots) needs(w *workload.Workload) bool {
	return w.Progress.Pods > 0 && s.areLimited() && !s.has(w.Key())
}

// full returns why a namespace may not begin a rollout, or plan.None if it may.
func (s *slots) full(namespace string) plan.Reason {
	if !s.areLimited() {
		return plan.None
	}
	s.count()
	most, perNamespace := s.options.MaxRollouts, s.options.MaxRolloutsPerNamespace
	switch {
	case most > 0 && s.taken.Free() <= 0:
		return plan.Limit
	case perNamespace > 0 && s.taken.TakenBy(namespace) >= perNamespace, most > 0 && !s.taken.MayTake(namespace):
		return plan.NamespaceLimit
	}
	return plan.None
}

// count counts the rollouts in progress, unless nothing has changed.
func (s *slots) count() {
	if s.known {
		return
	}
	s.known, s.taken = true, fair.NewSlots(s.options.MaxRollouts, len(s.options.Namespaces) == 1)
	for key := range s.following.rollouts {
		if s.has(key) {
			s.taken.Take(key.Namespace)
		}
	}
	for key := range s.patcher.underWay {
		if s.patcher.replaces(key) && !s.following.follows(key) {
			s.taken.Take(key.Namespace)
		}
	}
}
