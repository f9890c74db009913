package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now, and in which way. A workload only ever waits for something in its own namespace, except for
// slots. What Reloader rolls is in reloader.go, and the distance between two rolls in pace.go.
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
	// reason is plan.None if there is no obstacle.
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

// sentence returns the obstacle for people.
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
	if a.rollouts.needsSlot(w) {
		if why.reason = a.rollouts.full(w.ID.Namespace); why.reason == plan.None && a.debounce.slots.Has(p) {
			why.reason = p.reported[len(p.reported)-1] // It was woken for another reason, and its turn for a slot has not come yet.
		}
	}
	if why.reason != plan.None {
		return why
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

// isChosen reports whether people have chosen that a workload waits for a reason, so that a change does not take that long. They have chosen a canary
// only with --canary: otherwise one goes first because a rollout has failed.
func (a *admission) isChosen(why plan.Reason) bool {
	return rests(why) || why == plan.FilesPending || why == plan.CanaryFirst && a.options.Canary
}
