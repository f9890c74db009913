package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// maxDelays limits the total wait for new files, in multiples of the delay. Each later change starts the wait again.
	maxDelays = 3
	// reloadPause is the interval between attempts to get a worker that asks pods to reload.
	reloadPause = time.Second
)

// admission decides whether a workload may be rolled now, and how. Except for a free slot, a workload waits only for others of its namespace.
type admission struct {
	*term
	// rolls contains the workloads that were rolled within the last minutes.
	rolls map[workload.Key]pacedRoll
	// reloaded is when the last roll by Reloader was seen, in any namespace; reloaders contains the last one of each namespace.
	reloaded  time.Time
	reloaders map[string]reloaderRoll
}

func newAdmission(t *term) *admission {
	return &admission{term: t, rolls: make(map[workload.Key]pacedRoll), reloaders: make(map[string]reloaderRoll)}
}

// obstacle returns the reason why a workload must wait, given the verdict on its changes.
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
		why.paced = a.paceEnd(p, w, v.doing)
	}
	return why
}

// holds returns the reason why a workload that is to be rolled must wait, and chooses between a rollout and a reload in place.
func (a *admission) holds(p *pending, w *workload.Workload, doing []plan.Decision) obstacle {
	p.way = a.choose(p, w, doing)
	why := a.orders.gate(w, doing)
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
	needsSlot := w.Progress.Pods > 0 && !a.rollouts.hasSlot(w.Key()) // The change may be the fix for a rollout that has its slot.
	if full := a.rollouts.full(w.ID.Namespace); full != plan.None && needsSlot {
		return obstacle{reason: full}
	}
	return a.notReloadable(p, w)
}

// choose returns how a workload gets the changes. The API does not show when a kubelet has refreshed the files, so the delay starts when the last
// change was seen or stored, whichever is later: one of these clocks may be behind.
func (a *admission) choose(p *pending, w *workload.Workload, doing []plan.Decision) way {
	why, ok := plan.InPlace(w, doing)
	switch {
	case !ok:
		return way{instead: why}
	case p.notReloaded != "":
		return way{instead: p.notReloaded}
	}
	chosen := way{inPlace: true}
	for _, decision := range doing {
		event := p.changes[decision.Source].event
		for _, at := range []time.Time{event.change.Time, event.storedAt} {
			if refreshed := at.Add(a.options.ReloadInPlace); refreshed.After(chosen.refreshed) {
				chosen.refreshed = refreshed
			}
		}
	}
	if a.now().Before(chosen.refreshed) && !p.filesSince.IsZero() && chosen.refreshed.After(p.filesSince.Add(maxDelays*a.options.ReloadInPlace)) {
		return way{instead: "its sources change too often"}
	}
	return chosen
}

// notReloadable returns the reason why the pods of a workload that reloads in place cannot be asked to reload yet.
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

// isChosen reports whether a user chose this kind of wait. CanaryFirst is a choice only with --canary; otherwise a failed rollout caused it.
func (a *admission) isChosen(why plan.Reason) bool {
	return rests(why) || why == plan.FilesPending || why == plan.CanaryFirst && a.options.Canary > 0
}

// obstacle is the reason why a workload that is to be rolled must wait.
type obstacle struct {
	reason plan.Reason
	// peer is a workload that it waits for, the only one or one of several. It is nil if the workload waits for no other.
	peer *workload.Workload
	// end is when the wait ends. It is zero if the end depends on others.
	end time.Time
	// paced is when the workload may be rolled if only its pace delays the roll. Otherwise it is zero.
	paced time.Time
	// soon says that the workload only waits for its own moment in an open window, so that others may wait for it.
	soon bool
	// begins says that a pause begins that is not noted on the workload yet.
	begins bool
	// told says that the obstacle was reported before, perhaps by an earlier leader.
	told bool
	// said is the text of a user's reason, or empty.
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

// rests reports whether the reason to wait is a user's choice: a time, or an action by people. Thousands of workloads may rest for days, so other
// workloads trigger no review of them, and wait for them only if obstacle.soon is set.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }
