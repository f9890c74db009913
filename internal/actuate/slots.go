package actuate

import (
	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// slots bounds the rollouts in progress, in the cluster and in each namespace.
type slots struct {
	// most is --max-rollouts, and perNamespace --max-rollouts-per-namespace. Zero means no limit.
	most, perNamespace int
	// alone says that workloads of no other namespace are watched.
	alone     bool
	following *following
	patcher   *patcher
	// taken has the slots of the rollouts in progress. They are counted when somebody asks, if known is false.
	taken *fair.Slots
	known bool
}

// newSlots returns the slots of the options.
func newSlots(o Options, following *following, patcher *patcher) *slots {
	return &slots{
		most: o.MaxRollouts, perNamespace: o.MaxRolloutsPerNamespace, alone: len(o.Namespaces) == 1, following: following, patcher: patcher,
	}
}

// has reports whether the rollout of a workload has a slot: it replaces pods, or soon will.
func (s *slots) has(key workload.Key) bool {
	return s.following.replaces(key) || s.patcher.replaces(key)
}

// needs reports whether a workload takes a slot when it is rolled. A workload without pods takes none. One that is being rolled already has a slot
// and need not wait for another, because a further change may be what its pods need to start.
func (s *slots) needs(w *workload.Workload) bool {
	return w.Progress.Pods > 0 && (s.most > 0 || s.perNamespace > 0) && !s.has(w.Key())
}

// hasRoom reports whether a namespace may begin a rollout.
func (s *slots) hasRoom(namespace string) bool { return s.full(namespace) == plan.None }

// full returns why a namespace may not begin a rollout, or plan.None if it may.
func (s *slots) full(namespace string) plan.Reason {
	s.count()
	switch {
	case s.most > 0 && s.taken.Free() <= 0:
		return plan.Limit
	case s.perNamespace > 0 && s.taken.TakenBy(namespace) >= s.perNamespace, s.most > 0 && !s.taken.MayTake(namespace):
		return plan.NamespaceLimit
	}
	return plan.None
}

// count counts the rollouts in progress, unless nothing has changed.
func (s *slots) count() {
	if s.known || s.most == 0 && s.perNamespace == 0 {
		return
	}
	s.known, s.taken = true, fair.NewSlots(s.most, s.alone)
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
