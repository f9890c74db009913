package actuate

import (
	"maps"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// paceSteps is how often the distance doubles while changes keep coming, and paceMax the longest one.
	paceSteps, paceMax = 5, time.Minute
	// paceQuiet is how long after the distance no change must come at least, for the next one to be the shortest again.
	paceQuiet = 10 * time.Second
	// paceStalled is how long a rollout makes no progress before a change may be its repair.
	paceStalled = 10 * time.Second
)

// pacedRoll is the last roll of a workload, and how often the distance to the next one has doubled: a source that changes all the time does not
// replace pods all the time. A longer debounce would delay each single change; a growing distance delays the first one not at all. Only the leader
// knows it.
type pacedRoll struct {
	at   time.Time
	step int
	// of has what the rolls in a row were for, and fresh is how many after the first were for something that none before was for. Without those that
	// only repeat, the distance would have doubled so often.
	of    map[rolledKey]struct{}
	fresh int
}

// rolledKey is a key of a source, or the source if its keys are not known.
type rolledKey struct {
	source events.Source
	key    string
}

// rolledKeys returns what decisions are to roll a workload for.
func rolledKeys(doing []plan.Decision) []rolledKey {
	var keys []rolledKey
	for _, decision := range doing {
		if decision.Reason.Action() != plan.Roll {
			continue
		}
		if len(decision.Keys) == 0 {
			keys = append(keys, rolledKey{source: decision.Source})
		}
		for _, key := range decision.Keys {
			keys = append(keys, rolledKey{decision.Source, key})
		}
	}
	return keys
}

// isFresh reports whether the rolls in a row were not for one of the keys.
func (r pacedRoll) isFresh(keys []rolledKey) bool {
	return slices.ContainsFunc(keys, func(key rolledKey) bool {
		_, was := r.of[key]
		return !was
	})
}

// distance returns how long after a roll there is no other one, at first twice --settle. In Reloader's mode there is no distance.
func (a *admission) distance(step int) time.Duration {
	if a.options.Reloader.On {
		return 0
	}
	return min(2*a.options.Settle<<step, paceMax)
}

func (a *admission) lastRoll(w *workload.Workload) pacedRoll {
	if last, known := a.rolls[w.Key()]; known {
		return last
	}
	return pacedRoll{at: w.LastRoll(a.now())}
}

// paceEnd returns when a workload may be rolled that nothing else holds, zero if it may be now, as for a repair, or after a wait for people.
func (a *admission) paceEnd(p *pending, w *workload.Workload, doing []plan.Decision) time.Time {
	last := a.lastRoll(w)
	if last.at.IsZero() || !p.woke.IsZero() || w.RollsNow() || w.FailsBefore() || a.peers.has(w.Key()) {
		return time.Time{}
	}
	end := last.at.Add(a.distance(last.step))
	if last.fresh < last.step && last.isFresh(rolledKeys(doing)) {
		// What changes all the time does not delay what does not. It may be in the middle of a change, so it goes a little later than otherwise.
		if p.fresh.IsZero() {
			p.fresh = a.now()
		}
		soon := p.fresh.Add(a.distance(0))
		if due := last.at.Add(a.distance(last.fresh)); due.After(soon) {
			soon = due
		}
		if soon.Before(end) {
			end = soon
		}
	}
	if w.Progress.State != workload.Complete {
		moved := last.at
		if r := a.rollouts.followed[w.Key()]; r != nil {
			moved = r.moved
		}
		if stalled := moved.Add(paceStalled); stalled.Before(end) {
			end = stalled
		}
	}
	if !end.After(a.now()) {
		return time.Time{}
	}
	return end
}

// rolled records that a workload was rolled, or has reloaded in place, for pending changes.
func (a *admission) rolled(r *task) {
	last, keys := a.lastRoll(r.workload), rolledKeys(r.decisions)
	next := pacedRoll{at: r.decided, of: make(map[rolledKey]struct{}, len(keys))}
	if d := a.distance(last.step); !last.at.IsZero() && r.pending.first.Sub(last.at) < d+max(d, paceQuiet) {
		next.step, next.fresh = min(last.step+1, paceSteps), last.fresh
		if last.isFresh(keys) {
			next.fresh = min(last.fresh+1, paceSteps)
			next.step = next.fresh
		}
		maps.Copy(next.of, last.of)
	}
	for _, key := range keys {
		next.of[key] = struct{}{}
	}
	a.rolls[r.key()] = next
}

// forget drops the rolls after which the distance is the shortest again, and the count of slots: some rollouts wait for a time.
func (a *admission) forget() {
	a.rollouts.isCounted = false
	maps.DeleteFunc(a.rolls, func(_ workload.Key, last pacedRoll) bool { return a.now().Sub(last.at) > 2*paceMax })
}
