package actuate

import (
	"container/heap"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// pending is a workload with changes that are not decided yet. It becomes due when it has been quiet for a while.
type pending struct {
	key workload.Key
	// seen is the workload as it was when the newest change came. It may be gone since.
	seen   *workload.Workload
	claims map[events.Source]*claim
	// first is when the first change came.
	first time.Time
	due   time.Time
	// attempts counts the patches that were tried in vain.
	attempts int
	// held is why it waits although it is due; zero where it does not.
	held plan.Reason
	// said is the last reason for waiting that was told to people.
	said plan.Reason
	// place is where it stands in the queue, -1 where it does not.
	place int
}

// settleQueue holds the pending workloads, the one that is due first in front.
type settleQueue struct {
	byKey map[workload.Key]*pending
	// held are those that wait for something other than a time. They are in byKey too.
	held  map[workload.Key]*pending
	order dueOrder
}

func newSettleQueue() *settleQueue {
	return &settleQueue{byKey: make(map[workload.Key]*pending), held: make(map[workload.Key]*pending)}
}

// want gives the pending entry of a workload, a new one where there is none.
func (q *settleQueue) want(key workload.Key, now time.Time) *pending {
	p := q.byKey[key]
	if p == nil {
		p = &pending{key: key, claims: make(map[events.Source]*claim), first: now, place: -1}
		q.byKey[key] = p
	}
	return p
}

// schedule has a workload come up at due, and not before.
func (q *settleQueue) schedule(p *pending, due time.Time) {
	p.due = due
	q.byKey[p.key] = p
	if p.place < 0 {
		heap.Push(&q.order, p)
		return
	}
	heap.Fix(&q.order, p.place)
}

// pop takes the first workload that is due out of the queue; nil where there is none.
func (q *settleQueue) pop(now time.Time) *pending {
	if len(q.order) == 0 || q.order[0].due.After(now) {
		return nil
	}
	p, ok := heap.Pop(&q.order).(*pending)
	if !ok {
		return nil
	}
	return p
}

// next is when the first workload is due; false where nothing waits for a time.
func (q *settleQueue) next() (time.Time, bool) {
	if len(q.order) == 0 {
		return time.Time{}, false
	}
	return q.order[0].due, true
}

// drop forgets a workload that was popped.
func (q *settleQueue) drop(p *pending) {
	if q.byKey[p.key] == p {
		delete(q.byKey, p.key)
	}
}

// hold keeps a workload that was popped, until release.
func (q *settleQueue) hold(p *pending, why plan.Reason) {
	p.held = why
	q.held[p.key] = p
}

// release puts a held workload back into the queue, due now.
func (q *settleQueue) release(p *pending, now time.Time) {
	p.held = plan.None
	delete(q.held, p.key)
	q.schedule(p, now)
}

// isHeld tells whether a workload waits for something other than a time.
func (p *pending) isHeld() bool { return p.held != plan.None }

// doubt forgets what was before the changes, after a patch that failed: it may have been made, and its answer lost. Then
// the pods have more than what was before.
func (p *pending) doubt() {
	for _, c := range p.claims {
		c.from = nil
	}
}

// merge adds what earlier asked to p, of which it is an older entry: what p knows is newer.
func (p *pending) merge(earlier *pending) {
	for source, old := range earlier.claims {
		if c, ok := p.claims[source]; ok {
			c.tickets = append(old.tickets, c.tickets...)
		} else {
			p.claims[source] = old
		}
	}
	p.first, p.attempts = earlier.first, earlier.attempts
}

// dueOrder is the heap of the queue: see container/heap. Of two that are due at once the one that waits longer is first.
type dueOrder []*pending

func (o dueOrder) Len() int { return len(o) }

func (o dueOrder) Less(i, j int) bool {
	if o[i].due.Equal(o[j].due) {
		return o[i].first.Before(o[j].first)
	}
	return o[i].due.Before(o[j].due)
}

func (o dueOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push is for container/heap.
func (o *dueOrder) Push(x any) {
	if p, ok := x.(*pending); ok {
		p.place = len(*o)
		*o = append(*o, p)
	}
}

// Pop is for container/heap.
func (o *dueOrder) Pop() any {
	last := len(*o) - 1
	p := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	p.place = -1
	return p
}
