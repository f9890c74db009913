package actuate

import (
	"cmp"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// debounce gathers the changes of each workload, so that they lead to one roll. It also keeps the workloads that must wait longer.
type debounce struct {
	*term
	// byKey contains all pending workloads. peers contains, by namespace, those that wait for other workloads of the namespace.
	byKey map[workload.Key]*pending
	peers map[string]map[*pending]struct{}
	// order contains the workloads with a due time, due those whose time has come, and slots those that wait for a slot, even while under review.
	order []*pending
	due   *fair.Turns[*pending]
	slots *fair.Turns[*pending]
}

func newDebounce(t *term) *debounce {
	namespace := func(p *pending) []string { return []string{p.key.Namespace} }
	return &debounce{
		term: t, byKey: make(map[workload.Key]*pending), peers: make(map[string]map[*pending]struct{}),
		due: fair.NewTurns(namespace), slots: fair.NewTurns(namespace),
	}
}

func (d *debounce) has(key workload.Key, source events.Source) bool {
	p := d.byKey[key]
	return p != nil && p.changes[source] != nil
}

func (d *debounce) isFor(key workload.Key, change events.Change) bool {
	return d.has(key, change.Source) && d.byKey[key].changes[change.Source].change.ID() == change.ID()
}

// add gathers a change for a workload. From is the previous content, nil if unknown, and since is when the change arrived; both are used only for the
// first change of a source. A workload that is already due keeps its turn. An event that is not news to the workload does not extend its debounce
// window: other keys of a shared source may change all the time.
func (d *debounce) add(w *workload.Workload, e *takenEvent, from *events.Change, since time.Time, isNews bool) *pendingChange {
	key, now := w.Key(), d.now()
	p := d.byKey[key]
	if p == nil {
		p = &pending{key: key, changes: make(map[events.Source]*pendingChange), first: now}
		d.byKey[key] = p
	}
	p.seen, p.noteAt = w, time.Time{}
	if p.unnoted == 0 {
		p.noteRetry = time.Time{}
	}
	c := p.changes[e.change.Source]
	if p.deniedAs != nil && (c == nil || c.change.ID() != e.change.ID()) {
		p.tryAnew(now)
		isNews = true
	}
	if c == nil {
		c = &pendingChange{from: from, since: since}
		p.changes[e.change.Source] = c
	}
	c.follow(e)
	if p.held == plan.SourceOnHold || p.held != plan.None && e.change.Ignore {
		// The event may end the hold of the source, or make the pending change obsolete: so the wait is over.
		d.unhold(p)
		d.unschedule(p)
	}
	d.orders.review(key)
	if soon := now.Add(d.options.Settle); p.held == plan.Endless && p.due.After(soon) {
		d.schedule(p, soon) // A source that changes for the first time is not delayed by one that changes endlessly.
		return c
	}
	if p.held != plan.None || d.due.Has(p) || !isNews && !p.due.IsZero() {
		return c
	}
	due := d.windowEnd(p.first, now)
	if due.Before(p.retryAt) {
		due = p.retryAt
	}
	d.schedule(p, due)
	return c
}

// forget drops the pending change of a source that was deleted or recorded, so that a workload that waits forever does not collect names.
func (d *debounce) forget(key workload.Key, source events.Source) {
	p := d.byKey[key]
	p.changes[source].event.release()
	delete(p.changes, source)
	if len(p.changes) == 0 {
		d.take(p)
		d.drop(p)
	}
}

// abandon ends the spans of the changes that are left to the next leader.
func (d *debounce) abandon() {
	for _, p := range d.byKey {
		for _, c := range p.changes {
			c.event.span.End()
		}
	}
}

// windowEnd returns the end of a debounce window, given when its first change arrived and that another one arrives now.
func (d *debounce) windowEnd(first, now time.Time) time.Time {
	end := now.Add(d.options.Settle)
	if latest := first.Add(d.options.settleMax()); end.After(latest) {
		return latest
	}
	return end
}

// retry schedules a workload again after its patch failed, together with the changes that have arrived since.
func (d *debounce) retry(p *pending, delay time.Duration) {
	now := d.now()
	p.attempts++
	p.retryAt = now.Add(delay)
	due := p.retryAt
	if later := d.byKey[p.key]; later != nil {
		d.take(later)
		first := later.first
		later.merge(p)
		p = later
		if p.deniedAs != nil { // The new changes were not part of the refused patch.
			p.tryAnew(first)
			due = d.windowEnd(first, now)
		}
	}
	for _, c := range p.changes {
		c.from = nil // The patch may have been applied although it failed, so the previous content of the pods is unknown.
	}
	p.held, p.noteAt = plan.None, time.Time{}
	d.schedule(p, due)
	d.orders.review(p.key)
}

// byDue orders pending workloads by due time. Of those with the same due time, the one that has waited longest comes first.
func byDue(a, b *pending) int { return cmp.Or(a.due.Compare(b.due), a.first.Compare(b.first)) }

// schedule sets the time at which a workload is due.
func (d *debounce) schedule(p *pending, due time.Time) {
	d.unschedule(p)
	p.due = due
	d.byKey[p.key] = p
	d.due.Remove(p)
	i, _ := slices.BinarySearchFunc(d.order, p, func(other, _ *pending) int { return cmp.Or(byDue(other, p), -1) })
	d.order = slices.Insert(d.order, i, p)
}

func (d *debounce) unschedule(p *pending) {
	if !p.due.IsZero() {
		i := slices.Index(d.order, p)
		d.order, p.due = slices.Delete(d.order, i, i+1), time.Time{}
	}
}

// next returns when the next workload is due, and false if none waits for a time.
func (d *debounce) next() (time.Time, bool) {
	if len(d.order) == 0 {
		return time.Time{}, false
	}
	return d.order[0].due, true
}

// pop returns the next workload that waits for a slot of its namespace, or else a due one that may be patched, or nil. Due workloads cannot starve:
// only they can become waiters for a slot, and each gets a turn before it is due again. The caller drops, holds or schedules the workload.
func (d *debounce) pop(may, hasSlot func(namespace string) bool) *pending {
	if p := d.slots.Pop(hasSlot); p != nil {
		d.take(p)
		return p
	}
	for now := d.now(); len(d.order) > 0 && !d.order[0].due.After(now); {
		p := d.order[0]
		p.due, d.order[0], d.order = time.Time{}, nil, d.order[1:] // Shifting the slice would be quadratic if thousands are due at once.
		d.unhold(p)
		d.due.Push(p)
	}
	return d.due.Pop(may)
}

// take removes a workload from all queues.
func (d *debounce) take(p *pending) {
	d.unhold(p)
	d.due.Remove(p)
	d.slots.Remove(p)
	d.unschedule(p)
}

// drop forgets a workload that was popped.
func (d *debounce) drop(p *pending) {
	d.slots.Remove(p)
	if d.byKey[p.key] == p {
		delete(d.byKey, p.key)
		d.orders.review(p.key)
	}
}

// hold keeps a workload that was popped, until it is released.
func (d *debounce) hold(p *pending, why plan.Reason) {
	d.unhold(p)
	if p.held = why; why.Waiting() == plan.ForPeers {
		if d.peers[p.key.Namespace] == nil {
			d.peers[p.key.Namespace] = make(map[*pending]struct{})
		}
		d.peers[p.key.Namespace][p] = struct{}{}
	}
	if why.Waiting() == plan.ForSlot {
		d.slots.Push(p)
	} else {
		d.slots.Remove(p)
	}
}

func (d *debounce) unhold(p *pending) {
	p.held = plan.None
	if delete(d.peers[p.key.Namespace], p); len(d.peers[p.key.Namespace]) == 0 {
		delete(d.peers, p.key.Namespace)
	}
}

func (d *debounce) releaseFrom(key workload.Key, why plan.Reason) {
	if p := d.byKey[key]; p != nil && p.held == why {
		d.release(p, d.now())
	}
}

func (d *debounce) release(p *pending, now time.Time) {
	d.unhold(p)
	d.schedule(p, now)
}
