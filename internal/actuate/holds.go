package actuate

import (
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
