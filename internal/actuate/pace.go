package actuate

import (
	"maps"
	"time"

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

// pacedRoll is the last roll of a workload: when it was decided, and how often the distance after it has doubled. Between the rolls of one workload
// there is a distance, so that a source that changes all the time does not replace its pods all the time. See
// docs/adr/0050-rolls-of-a-workload-keep-a-distance.md. Only the leader knows it.
type pacedRoll struct {
	at   time.Time
	step int
}

// distance returns how long after a roll there is no other one, at first twice --settle. In Reloader's mode there is no distance.
func (a *admission) distance(after pacedRoll) time.Duration {
	if a.options.Reloader {
		return 0
	}
	return min(2*a.options.Settle<<after.step, paceMax)
}

func (a *admission) lastRoll(w *workload.Workload) pacedRoll {
	if last, known := a.rolls[w.Key()]; known {
		return last
	}
	return pacedRoll{at: w.LastRoll(a.now())}
}

// paceEnd returns when a workload may be rolled that nothing else holds, zero if it may be now. A change that may be a repair does not wait, nor does
// one that has waited for people. A repetition of a roll that was reverted comes later than that anyway.
func (a *admission) paceEnd(p *pending, w *workload.Workload) time.Time {
	last := a.lastRoll(w)
	if last.at.IsZero() || !p.woke.IsZero() || w.RollsNow() || w.FailsBefore() || a.peers.has(w.Key()) {
		return time.Time{}
	}
	end := last.at.Add(a.distance(last))
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
	last, next := a.lastRoll(r.workload), pacedRoll{at: r.decided}
	if d := a.distance(last); !last.at.IsZero() && r.pending.first.Sub(last.at) < d+max(d, paceQuiet) {
		next.step = min(last.step+1, paceSteps)
	}
	a.rolls[r.key()] = next
}

// forget drops the rolls after which the distance is the shortest again, and the count of slots: some rollouts wait for a time.
func (a *admission) forget() {
	a.rollouts.isCounted = false
	maps.DeleteFunc(a.rolls, func(_ workload.Key, last pacedRoll) bool { return a.now().Sub(last.at) > 2*paceMax })
}
