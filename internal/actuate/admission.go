package actuate

import (
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now, and in which way. Except for slots, it only waits for others of its namespace.
type admission struct {
	*term
	// rolls has the workloads that were rolled within the last minutes.
	rolls map[workload.Key]pacedRoll
	// reloaded is when the newest roll of Reloader was seen, and reloaders has the newest of each namespace.
	reloaded  time.Time
	reloaders map[string]reloaderRoll
}

func newAdmission(t *term) *admission {
	return &admission{term: t, rolls: make(map[workload.Key]pacedRoll), reloaders: make(map[string]reloaderRoll)}
}

// review looks at a workload that has changed or gone.
func (a *admission) review(key workload.Key) {
	a.orders.review(key)
	a.reviewReloader(key)
}

// obstacle is why a workload that is to be rolled must wait.
type obstacle struct {
	reason plan.Reason
	// peer is the workload that it waits for, or one of them if there are several. It is nil if it waits for no other workload.
	peer *workload.Workload
	// end is when it has waited long enough. It is zero if that depends on others.
	end time.Time
	// paced is when it may be rolled, if nothing but its pace delays that. Otherwise it is zero.
	paced time.Time
	// soon says that it only waits for its own moment within a window that is open, so that others may wait for it.
	soon bool
	// begins says that a pause begins, and that this is not noted on the workload yet.
	begins bool
	// said is text that somebody has given as the reason, or empty.
	said string
}

func (o obstacle) sentence() string {
	text := o.reason.Sentence()
	if !o.end.IsZero() {
		text += ": until " + o.end.UTC().Format(time.RFC3339)
	}
	if o.peer != nil {
		text += ": " + o.peer.ID.String()
	}
	if o.said != "" {
		text += ": " + o.said
	}
	return text
}

// obstacle returns why a workload must wait, given what was decided about its changes.
func (a *admission) obstacle(p *pending, w *workload.Workload, v verdict) obstacle {
	why := v.waits
	if v.rolls {
		why = a.holds(p, w, v.doing)
	}
	wasResting := p.rested
	if p.rested = a.isChosen(why.reason); wasResting && !p.rested {
		p.woke = a.now()
	}
	if v.rolls && why.reason == plan.None {
		why.paced = a.paceEnd(p, w)
	}
	return why
}

// holds returns what a workload that is to be rolled must wait for, and chooses between a rollout and a reload in place.
func (a *admission) holds(p *pending, w *workload.Workload, doing []plan.Decision) obstacle {
	p.way = a.choose(p, w, doing)
	why := a.orders.gate(w)
	if end, waits := a.reloaderEnd(w.ID.Namespace, p.first); why.reason == plan.None && waits {
		why = obstacle{reason: plan.ReloaderFirst, end: end}
	}
	if why.reason == plan.None {
		why.reason, why.peer = a.orders.stop(w, owedBy(doing))
	}
	if why.reason != plan.None {
		p.filesSince = time.Time{}
		return why
	}
	needsSlot := w.Progress.Pods > 0 && !a.rollouts.hasSlot(w.Key()) // A further change may be what the pods of one that is being rolled need.
	if full := a.rollouts.full(w.ID.Namespace); full != plan.None && needsSlot {
		return obstacle{reason: full}
	}
	return a.notReloadable(p, w)
}

// notReloadable returns why the pods of a workload that reloads in place cannot be asked to reload yet.
func (a *admission) notReloadable(p *pending, w *workload.Workload) obstacle {
	switch now := a.now(); {
	case !p.way.inPlace:
	case now.Before(p.way.refreshed):
		if p.filesSince.IsZero() {
			p.filesSince = now
		}
		return obstacle{reason: plan.FilesPending, end: p.way.refreshed}
	case !a.patcher.reloaders.MayTake(w.ID.Namespace):
		return obstacle{reason: plan.FilesPending, end: now.Add(reloadPause)}
	}
	return obstacle{}
}

// isChosen reports whether people have chosen that a workload waits for a reason. Without --canary, one goes first because a rollout has failed.
func (a *admission) isChosen(why plan.Reason) bool {
	return rests(why) || why == plan.FilesPending || why == plan.CanaryFirst && a.options.Canary
}

const (
	// paceSteps is how often the distance doubles while changes keep coming, and paceMax the longest one.
	paceSteps, paceMax = 5, time.Minute
	// paceQuiet is how long after the distance no change must come at least, for the next one to be the shortest again.
	paceQuiet = 10 * time.Second
	// paceStalled is how long a rollout makes no progress before a change may be its repair.
	paceStalled = 10 * time.Second
)

// pacedRoll is the last roll of a workload, and how often the distance to the next one has doubled: a source that changes all the time does not
// replace pods all the time. See docs/adr/0050-rolls-of-a-workload-keep-a-distance.md. Only the leader knows it.
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

// paceEnd returns when a workload may be rolled that nothing else holds, zero if it may be now, as for a repair, or after a wait for people.
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
