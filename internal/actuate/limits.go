package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// limits bounds the rollouts in progress, in the cluster and in each namespace. A namespace may begin one while it has fewer in progress than there
// are free slots. So a single busy namespace gets half of the slots, each of two gets a third, and one with no rollout in progress finds a free slot,
// unless there are as many rolling namespaces as slots. Rollouts that never end thus cost another namespace at most half of its own slots, never all.
type limits struct {
	// maxRollouts is --max-rollouts, and perNamespace --max-rollouts-per-namespace. Zero means no limit.
	maxRollouts, perNamespace int
	// alone says that workloads of no other namespace are watched. Nobody else needs a slot.
	alone     bool
	following *following
	patcher   *patcher
	// inProgress has the workloads whose rollouts have a slot, and taken counts them by namespace. If nil, they are not known, and are counted on
	// demand.
	inProgress map[workload.Key]struct{}
	taken      map[string]int
}

// newLimits returns the limits of the options.
func newLimits(o Options, following *following, patcher *patcher) *limits {
	return &limits{
		maxRollouts: o.MaxRollouts, perNamespace: o.MaxRolloutsPerNamespace, alone: len(o.Namespaces) == 1, following: following, patcher: patcher,
	}
}

// forget makes the rollouts in progress be counted again: some wait for a time, and nothing signals when that comes.
func (l *limits) forget() { l.inProgress = nil }

// review looks at a workload that has changed, or whose patch or rollout has begun or ended.
func (l *limits) review(key workload.Key) {
	if l.inProgress == nil {
		return
	}
	_, had := l.inProgress[key]
	switch has := l.hasSlot(key); {
	case has && !had:
		l.inProgress[key] = struct{}{}
		l.taken[key.Namespace]++
	case had && !has:
		delete(l.inProgress, key)
		if l.taken[key.Namespace]--; l.taken[key.Namespace] == 0 {
			delete(l.taken, key.Namespace)
		}
	}
}

// hasSlot reports whether the rollout of a workload has a slot: it replaces pods, or soon will.
func (l *limits) hasSlot(key workload.Key) bool {
	return l.following.replaces(key) || l.patcher.replaces(key)
}

// stop returns why a workload must wait for a slot, or plan.None if it need not.
func (l *limits) stop(w *workload.Workload) plan.Reason {
	if !l.needsSlot(w) {
		return plan.None
	}
	return l.full(w.ID.Namespace)
}

// needsSlot reports whether a workload takes a slot when it is rolled. A workload without pods takes none. One that is being rolled already has a
// slot and need not wait for another, because a further change may be what its pods need to start.
func (l *limits) needsSlot(w *workload.Workload) bool {
	if w.Progress.Pods == 0 || l.maxRollouts == 0 && l.perNamespace == 0 {
		return false
	}
	l.count()
	_, has := l.inProgress[w.Key()]
	return !has
}

// hasRoom reports whether a namespace may begin a rollout.
func (l *limits) hasRoom(namespace string) bool { return l.full(namespace) == plan.None }

// full returns why a namespace may not begin a rollout, or plan.None if it may.
func (l *limits) full(namespace string) plan.Reason {
	l.count()
	own, free := l.taken[namespace], l.maxRollouts-len(l.inProgress)
	switch {
	case l.maxRollouts > 0 && free <= 0:
		return plan.Limit
	case l.perNamespace > 0 && own >= l.perNamespace:
		return plan.NamespaceLimit
	case l.maxRollouts > 0 && !l.alone && own >= free:
		return plan.NamespaceLimit
	}
	return plan.None
}

// count counts the rollouts that have a slot, unless they are known.
func (l *limits) count() {
	if l.inProgress != nil {
		return
	}
	l.inProgress, l.taken = make(map[workload.Key]struct{}), make(map[string]int)
	for key := range l.following.rollouts {
		l.review(key)
	}
	for key := range l.patcher.underWay {
		l.review(key)
	}
}
