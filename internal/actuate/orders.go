package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// snapshotAge is the maximum age of a snapshot, as some workloads wait for a time.
	snapshotAge = time.Second
	// wakePause is the shortest time between two looks at the workloads of a namespace that wait for others, if there are more than wakeFew.
	wakePause, wakeFew = 200 * time.Millisecond, 100
)

// orders takes the snapshots that determine the order in each namespace. They include workloads that are not due yet: otherwise a workload could go
// before another one that the same change concerns. A snapshot is valid until something in the namespace changes.
type orders struct {
	*term
	byNamespace map[string]*plan.Order
	// members is keyed by the state in the index, because a key of three strings costs more to find than to read most members.
	members map[*workload.Workload]*plan.Member
	taken   time.Time
	// moved contains the namespaces with changes since their waiting workloads were last looked at; looked is when that was.
	moved  map[string]struct{}
	looked map[string]time.Time
}

func newOrders(t *term) *orders {
	return &orders{
		term: t, byNamespace: make(map[string]*plan.Order), members: make(map[*workload.Workload]*plan.Member),
		moved: make(map[string]struct{}), looked: make(map[string]time.Time),
	}
}

// review discards the snapshots with a workload. Call it when the workload, its pending changes, its patch or its rollout has changed.
func (o *orders) review(key workload.Key) {
	o.rollouts.slots = nil
	delete(o.members, o.index.Get(key))
	delete(o.byNamespace, key.Namespace)
	if len(o.debounce.peers[key.Namespace]) > 0 {
		o.moved[key.Namespace] = struct{}{}
	}
}

// wake makes workloads due that waited for others, and now do not wait or wait for another reason.
func (o *orders) wake() {
	now := o.now()
	for namespace := range o.moved {
		waiting := o.debounce.peers[namespace]
		if len(waiting) > wakeFew && now.Before(o.looked[namespace].Add(wakePause)) {
			continue
		}
		delete(o.moved, namespace)
		o.looked[namespace] = now
		for p := range waiting {
			why := plan.None
			if w := o.index.Get(p.key); w != nil {
				why, _ = o.stop(w, o.member(w).Owes)
			}
			if why != p.held {
				o.debounce.release(p, now)
			}
		}
	}
}

// gate returns the reason why a user's choice, or endless changes of its sources, keep a workload from being rolled now. The reason is plan.None if
// it may be rolled.
func (o *orders) gate(w *workload.Workload, doing []plan.Decision) obstacle {
	now := o.now()
	since := now // A pause would begin with a change that arrives now.
	if p := o.debounce.byKey[w.Key()]; p != nil && !p.rollsSince.IsZero() {
		since = p.rollsSince
	}
	gate := plan.GateOf(w.In(o.namespaces.Get(w.ID.Namespace)), since, now)
	if gate.Reason == plan.None {
		gate = plan.GateOfChanges(w, doing, now)
	}
	return obstacle{reason: gate.Reason, end: gate.End, said: gate.Said, soon: gate.Soon, begins: gate.Begins, told: gate.IsTold}
}

// stop returns why a workload that owes changes waits for another one, and which. The reason is plan.None if it waits for nobody.
func (o *orders) stop(w *workload.Workload, owes map[events.Source]workload.RolledFor) (plan.Reason, *workload.Workload) {
	of := o.of(w.ID.Namespace)
	if o.options.Canary == 0 && len(of.Suspecting) == 0 && !o.index.HasWaves(w.ID.Namespace) {
		return plan.None, nil
	}
	me := *o.member(w)
	me.Owes = owes
	why, peer := of.Wait(&me)
	if peer == nil {
		return plan.None, nil
	}
	return why, o.index.Get(peer.Key)
}

// isTrying reports whether others wait for the pods of a workload to stay ready after a rollout, or may wait after an earlier leader's rollout.
func (o *orders) isTrying(w *workload.Workload, r *rollout) bool {
	if o.options.Canary == 0 || !w.Tries() || w.Bake() == 0 {
		return false
	}
	var missing map[string]workload.RolledFor
	if !r.own {
		missing = workload.ChangesOf(r.started)
	}
	of := o.of(w.ID.Namespace)
	return of.IsAwaited(o.member(w), w.Recorded(), missing)
}

func (o *orders) of(namespace string) *plan.Order {
	if now := o.now(); now.Sub(o.taken) >= snapshotAge {
		o.taken = now
		clear(o.byNamespace)
		clear(o.members)
		clear(o.looked)
	}
	if of := o.byNamespace[namespace]; of != nil {
		return of
	}
	of := &plan.Order{Always: o.options.Canary > 0}
	of.Readers = func(source events.Source) []*plan.Member {
		var readers []*plan.Member
		for _, w := range o.index.Dependents(source) {
			if w.ID.Namespace == namespace {
				readers = append(readers, o.member(w))
			}
		}
		return readers
	}
	for _, key := range o.peers.in(namespace) {
		if w := o.index.Get(key); w != nil {
			of.Suspecting = append(of.Suspecting, o.member(w))
		}
	}
	o.byNamespace[namespace] = of
	return of
}

func (o *orders) member(w *workload.Workload) *plan.Member {
	m := o.members[w]
	if m == nil {
		m = o.read(w)
		o.members[w] = m
	}
	return m
}

// read returns the state of a workload that matters to others.
func (o *orders) read(w *workload.Workload) *plan.Member {
	key := w.Key()
	isWaiting := w.Unserved || w.Progress.Waits(o.now())
	m := &plan.Member{
		Key: key, Wave: w.Wave, Pods: w.Progress.Pods, Tries: w.Tries(), IsReady: w.Progress.State == workload.Complete && !w.Unserved,
		FailsBefore: w.FailsBefore(), HasFailed: o.peers.has(key), Suspects: o.peers.suspects(key),
	}
	if !w.IsReplaced() {
		m.Has = w.Rolled
	}
	if r := o.rollouts.followed[key]; r != nil {
		m.IsFollowed, m.IsRolling, m.FailsBefore = true, !isWaiting, w.Last.WasFailing()
		for _, s := range r.started.Sources {
			m.RollsFor = append(m.RollsFor, s.Source)
		}
		for source := range w.ChangesIn(w.Last.With) { // Pods with these changes were replaced before they were ready.
			m.RollsFor = append(m.RollsFor, source)
		}
	}
	if r := o.patcher.underWay[key]; r != nil && len(r.causes) > 0 && !r.pending.refused {
		m.IsFollowed, m.IsRolling, m.FailsBefore, m.Writes = true, true, r.workload.FailsBefore(), r.content
		for _, c := range r.causes {
			m.RollsFor = append(m.RollsFor, c.change.Source.String())
		}
	}
	p := o.debounce.byKey[key]
	if p == nil {
		return m
	}
	doing := o.verdict(p, w).doing
	why := o.gate(w, doing)
	m.IsRefused = p.refused
	m.Goes = !w.Unserved && !p.refused && (why.reason == plan.None || why.soon)
	m.CanGoFirst = m.Goes && p.attempts == 0
	m.Owes = owedBy(doing)
	for _, decision := range doing {
		if decision.Reason == plan.PodsStarting && !isWaiting {
			m.Starts = append(m.Starts, decision.Source)
		}
	}
	return m
}

// owedBy returns the changes to roll for.
func owedBy(doing []plan.Decision) map[events.Source]workload.RolledFor {
	owes := make(map[events.Source]workload.RolledFor, len(doing))
	for _, decision := range doing {
		if decision.Reason.Action() == plan.Roll {
			owes[decision.Source] = decision.Record
		}
	}
	return owes
}
