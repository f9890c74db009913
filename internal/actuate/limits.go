package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// limits bounds the rollouts in progress: those of the cluster, and those of each namespace. A namespace may begin one while it has fewer than
// slots are free. So one alone has half of the slots, of two each has a third, and one that has none finds a slot, until as many namespaces as
// there are slots roll at a time. Rollouts that never end so cost another namespace half of its own slots at most, and never all.
type limits struct {
	// maxRollouts is --max-rollouts, and perNamespace --max-rollouts-per-namespace. Zero is without limit.
	maxRollouts, perNamespace int
	// alone says that workloads of no other namespace are watched. Nobody else needs a slot.
	alone     bool
	following *following
	patcher   *patcher
	// inProgress are the workloads whose rollouts have a slot, and taken counts those of each namespace. Nil: they are not known, and are looked for
	// when somebody asks.
	inProgress map[workload.Key]struct{}
	taken      map[string]int
}

// newLimits returns the limits of the options.
func newLimits(o Options, following *following, patcher *patcher) *limits {
	return &limits{
		maxRollouts: o.MaxRollouts, perNamespace: o.MaxRolloutsPerNamespace, alone: len(o.Namespaces) == 1, following: following, patcher: patcher,
	}
}

// forget has the rollouts in progress counted again: some wait for a time, which nobody tells.
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

// stop returns why a workload must wait for a slot, plan.None if it need not.
func (l *limits) stop(w *workload.Workload) plan.Reason {
	if !l.needsSlot(w) {
		return plan.None
	}
	return l.full(w.ID.Namespace)
}

// needsSlot reports whether a workload takes a slot when it is rolled. One without pods takes none, and one that is being rolled has its own: what
// comes meanwhile may be what its pods need to start.
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

// full returns why a namespace may begin no rollout, plan.None if it may.
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

// count looks for the rollouts that have a slot, if they are not known.
func (l *limits) count() {
	if l.inProgress != nil {
		return
	}
	l.inProgress, l.taken = make(map[workload.Key]struct{}), make(map[string]int)
	for key := range l.following.rollouts {
		l.review(key)
	}
	for key := range l.patcher.rolls {
		l.review(key)
	}
}
