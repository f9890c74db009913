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

// pace keeps a distance between the rolls of one workload, so that a source that changes all the time does not replace its pods all the time. See
// docs/adr/0050-rolls-of-a-workload-keep-a-distance.md. It is only known to the leader.
type pace struct {
	*term
	// rolls has the workloads that were rolled within the last minutes.
	rolls map[workload.Key]pacedRoll
}

// pacedRoll is the last roll of a workload: when it was decided, and how often the distance after it has doubled.
type pacedRoll struct {
	at   time.Time
	step int
}

// distance returns how long after a roll there is no other one, at first twice --settle. In Reloader's mode there is no distance.
func (c *pace) distance(after pacedRoll) time.Duration {
	if c.options.Reloader {
		return 0
	}
	return min(2*c.options.Settle<<after.step, paceMax)
}

func (c *pace) last(w *workload.Workload) pacedRoll {
	if last, known := c.rolls[w.Key()]; known {
		return last
	}
	return pacedRoll{at: w.LastRoll(c.now())}
}

// end returns when a workload may be rolled that nothing else holds, zero if it may be now. What may be a repair does not wait, and neither does what
// has waited for people. A repetition of a roll that was reverted comes later than that anyway.
func (c *pace) end(p *pending, w *workload.Workload) time.Time {
	last := c.last(w)
	if last.at.IsZero() || !p.woke.IsZero() || w.RollsNow() || w.FailsBefore() || c.peers.has(w.Key()) {
		return time.Time{}
	}
	end := last.at.Add(c.distance(last))
	if w.Progress.State != workload.Complete {
		moved := last.at
		if r := c.following.rollouts[w.Key()]; r != nil {
			moved = r.moved
		}
		if stalled := moved.Add(paceStalled); stalled.Before(end) {
			end = stalled
		}
	}
	if !end.After(c.now()) {
		return time.Time{}
	}
	return end
}

// rolled records that a workload was rolled, or has reloaded in place, for pending changes.
func (c *pace) rolled(r *task) {
	last, next := c.last(r.workload), pacedRoll{at: r.decided}
	if d := c.distance(last); !last.at.IsZero() && r.pending.first.Sub(last.at) < d+max(d, paceQuiet) {
		next.step = min(last.step+1, paceSteps)
	}
	c.rolls[r.key()] = next
}

// forget drops the rolls after which the distance is the shortest again.
func (c *pace) forget() {
	maps.DeleteFunc(c.rolls, func(_ workload.Key, last pacedRoll) bool { return c.now().Sub(last.at) > 2*paceMax })
}
