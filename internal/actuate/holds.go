package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// awaited is what a held workload waits for. With it, the end of a rollout wakes the workloads that may go, and none of thousands of others. The
// zero value means that the workload does not wait for others: see rests.
type awaited struct {
	// any says that any event in the namespace may be what it waits for.
	any bool
	// slot says that it waits for a slot, in whatever namespace one becomes free.
	slot bool
	// workload is the workload that it waits for: another one, or the held one itself.
	workload  workload.Key
	namespace string
	// wave is the wave of the held workload: all lower waves must be finished with the source.
	source events.Source
	wave   int
}

// isWave reports whether the workload waits for the end of the lower waves.
func (a awaited) isWave() bool { return a.source != (events.Source{}) }

// holds are the held workloads, by what they wait for.
type holds struct {
	by map[awaited]map[workload.Key]*pending
	// waves has, by namespace, those keys of by that are ends of waves.
	waves map[string]map[awaited]struct{}
}

func newHolds() holds {
	return holds{by: make(map[awaited]map[workload.Key]*pending), waves: make(map[string]map[awaited]struct{})}
}

func (h *holds) add(p *pending) {
	h.remove(p)
	of := p.awaits()
	if of == (awaited{}) {
		return
	}
	p.heldFor = of
	if h.by[of] == nil {
		h.by[of] = make(map[workload.Key]*pending)
		if of.isWave() {
			if h.waves[of.namespace] == nil {
				h.waves[of.namespace] = make(map[awaited]struct{})
			}
			h.waves[of.namespace][of] = struct{}{}
		}
	}
	h.by[of][p.key] = p
}

func (h *holds) remove(p *pending) {
	of := p.heldFor
	p.heldFor = awaited{}
	if delete(h.by[of], p.key); len(h.by[of]) > 0 {
		return
	}
	delete(h.by, of)
	if !of.isWave() {
		return
	}
	if delete(h.waves[of.namespace], of); len(h.waves[of.namespace]) == 0 {
		delete(h.waves, of.namespace)
	}
}

// awaits returns what a workload waits for, given the reason why it is held.
func (p *pending) awaits() awaited {
	switch p.held.Waiting() {
	case plan.ForPeople:
		return awaited{}
	case plan.ForSlot:
		return awaited{slot: true}
	case plan.ForItself:
		return awaited{workload: p.key}
	default:
	}
	switch {
	case p.noted != (awaited{}):
		return p.noted
	case (p.held == plan.CanaryFirst || p.held == plan.PeerFailed) && p.behind != (workload.Key{}):
		return awaited{workload: p.behind}
	default:
		return awaited{any: true, namespace: p.key.Namespace}
	}
}

// rests reports whether a workload that is held for a reason waits because people chose so: for a time, or for something that they do. It waits for
// no other workload: there may be thousands of them, for days, and no event of others makes them be reviewed. Others wait for it only if it waits
// for a moment: see obstacle.soon.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }

// rest records whether a workload that is being reviewed rests, or waits for the configured delay for its files.
func (p *pending) rest(rests bool, now time.Time) {
	if p.rested && !rests {
		p.woke = now
	}
	p.rested = rests
}

// wake makes a workload that has changed due if it rests, or waits for its pods. The notes on it may be gone, too.
func (d *debounce) wake(key workload.Key, now time.Time) {
	p := d.byKey[key]
	if p == nil {
		return
	}
	p.noteAt = time.Time{}
	if rests(p.held) || p.held == plan.PodsStarting {
		d.release(p, now)
	}
}

// releaseHeld makes the workloads due that an event at a workload of their namespace may have released: those that wait for that workload, those
// whose lower waves are finished, and those for which it is not known what they wait for. Those that wait for a slot get their turn when there is
// one.
func (d *debounce) releaseHeld(key workload.Key, now time.Time) {
	d.releaseThose(awaited{any: true, namespace: key.Namespace}, now)
	d.releaseThose(awaited{workload: key}, now)
	for of := range d.holds.waves[key.Namespace] {
		if d.finished(of) {
			d.releaseThose(of, now)
		}
	}
}

// releaseNamespace makes all held workloads of a namespace due, after an event that may change what any of them waits for. Those that wait for a
// slot get their turn when there is one.
func (d *debounce) releaseNamespace(namespace string, now time.Time) {
	for of, held := range d.holds.by {
		if of.slot {
			continue
		}
		for _, p := range held {
			if p.key.Namespace == namespace {
				d.release(p, now)
			}
		}
	}
}

// releaseOne makes a workload due if it waits for others. One that waits for a slot gets its turn when there is one.
func (d *debounce) releaseOne(key workload.Key, now time.Time) {
	if p := d.byKey[key]; p != nil && p.heldFor != (awaited{}) && !p.heldFor.slot {
		d.release(p, now)
	}
}

// releaseAll makes every held workload due except those that rest.
func (d *debounce) releaseAll(now time.Time) {
	for of := range d.holds.by {
		d.releaseThose(of, now)
	}
}

func (d *debounce) releaseThose(of awaited, now time.Time) {
	for _, p := range d.holds.by[of] {
		d.release(p, now)
	}
}
