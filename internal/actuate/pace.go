package actuate

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// paceSteps is how often the distance doubles while changes keep coming; paceMax is the longest distance.
	paceSteps, paceMax = 5, time.Minute
	// paceQuiet is the shortest time without a change, after the distance, that resets the distance.
	paceQuiet = 10 * time.Second
	// paceStalled is how long a rollout makes no progress before a change may be its fix.
	paceStalled = 10 * time.Second
)

// pacedRoll is the last roll of a workload, and how often the distance to the next one has doubled, so that a source that changes all the time does
// not replace pods all the time. Unlike a longer debounce, a growing distance does not delay the first change. Only the leader knows it.
type pacedRoll struct {
	at   time.Time
	step int
	// of contains what the consecutive rolls were for. fresh counts those after the first that were for something new; without repetitions, the
	// distance would have doubled only fresh times.
	of    sets.Set[rolledKey]
	fresh int
}

// rolledKey is a key of a source, or the whole source if its keys are unknown.
type rolledKey struct {
	source events.Source
	key    string
}

// rolledKeys returns the keys that the decisions roll a workload for.
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

// isFresh reports whether one of the keys is new to the consecutive rolls.
func (r pacedRoll) isFresh(keys []rolledKey) bool { return !r.of.HasAll(keys...) }

// distance returns the shortest time from a roll to the next one, at first twice --settle. In Reloader's mode it is zero.
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

// paceEnd returns when a workload may be rolled that nothing else holds, zero if now: also for a fix, or after a wait that users chose.
func (a *admission) paceEnd(p *pending, w *workload.Workload, doing []plan.Decision) time.Time {
	last := a.lastRoll(w)
	if last.at.IsZero() || !p.woke.IsZero() || w.RollsNow() || w.FailsBefore() || a.peers.has(w.Key()) {
		return time.Time{}
	}
	end := last.at.Add(a.distance(last.step))
	if last.fresh < last.step && last.isFresh(rolledKeys(doing)) {
		// Endless changes do not delay a fresh one. The source may be in the middle of a change, so wait a little longer than the debounce.
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

// rolled records a roll or reload in place of a workload.
func (a *admission) rolled(r *task) {
	last, keys := a.lastRoll(r.workload), rolledKeys(r.decisions)
	next := pacedRoll{at: r.decided, of: sets.New(keys...)}
	if d := a.distance(last.step); !last.at.IsZero() && r.pending.first.Sub(last.at) < d+max(d, paceQuiet) {
		next.step, next.fresh = min(last.step+1, paceSteps), last.fresh
		if last.isFresh(keys) {
			next.fresh = min(last.fresh+1, paceSteps)
			next.step = next.fresh
		}
		maps.Copy(next.of, last.of)
	}
	a.rolls[r.key()] = next
}

// forget drops the rolls whose distance is reset, and the count of slots, because some rollouts wait for a time.
func (a *admission) forget() {
	a.rollouts.slots = nil
	maps.DeleteFunc(a.rolls, func(_ workload.Key, last pacedRoll) bool { return a.now().Sub(last.at) > 2*paceMax })
}
