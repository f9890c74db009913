package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now. What a workload waits for is of its own namespace, but for the slots.
type admission struct {
	timing    *timing
	peers     *failedPeers
	canaries  *canaries
	waves     *waves
	limits    *limits
	reloads   *reloads
	gathering *debounce
	following *following
}

// obstacle is why a workload that is to be rolled must wait.
type obstacle struct {
	// reason is plan.None if nothing stands in its way.
	reason plan.Reason
	// peer is the workload that it waits for, one of them if there are several. Nil: it waits for no other.
	peer *workload.Workload
	// awaits is what it waits for, where reason and peer do not say it.
	awaits awaited
	// end is when it has waited long enough. Zero: that depends on others.
	end time.Time
	// soon says that the end is a moment of its own in a window that is open, so that others may wait for it.
	soon bool
	// begins says that a pause begins, and the workload does not say so yet.
	begins bool
	// said is what somebody has said about it, empty if nothing.
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

// obstacle returns why a workload that is to be rolled must wait. Doing are the decisions that its patch would carry out, and since is when the
// first of their changes came.
func (a *admission) obstacle(w *workload.Workload, doing []plan.Decision, since time.Time) obstacle {
	if why := a.timing.stop(w); why.reason != plan.None {
		return why
	}
	if end, waits := a.reloads.end(w.ID.Namespace, since); waits {
		return obstacle{reason: plan.ReloaderFirst, end: end}
	}
	for i := range doing {
		if peer := a.peers.stop(w, &doing[i]); peer != nil {
			return obstacle{reason: plan.PeerFailed, peer: peer}
		}
		if peer := a.canaries.stop(w, &doing[i]); a.waitsFor(w, peer) {
			return obstacle{reason: plan.CanaryFirst, peer: peer}
		}
		if peer := a.waves.stop(w, doing[i].Source); a.waitsFor(w, peer) {
			return obstacle{reason: plan.LowerWave, peer: peer, awaits: a.below(w, doing[i].Source)}
		}
	}
	return obstacle{reason: a.limits.stop(w)}
}

// below returns the end of the waves below a workload. One that failed may go before that: see waitsFor.
func (a *admission) below(w *workload.Workload, source events.Source) awaited {
	if a.peers.has(w.Key()) {
		return awaited{}
	}
	return awaited{namespace: w.ID.Namespace, source: source, wave: w.Wave}
}

// waitsFor reports whether a workload must wait for one that goes before it, nil if there is none. A workload that failed does not wait for one
// that waits for the repair of such a workload, which may be what is to begin now.
func (a *admission) waitsFor(w, first *workload.Workload) bool {
	return first != nil && (!a.peers.has(w.Key()) || !a.awaitsRepair(first.Key()))
}

// maxBehind is how many workloads are looked at that wait for each other in a row.
const maxBehind = 100

// awaitsRepair reports whether a workload waits for the repair of one that failed, or for another that does, as far as these were looked at.
func (a *admission) awaitsRepair(key workload.Key) bool {
	for range maxBehind {
		p := a.gathering.byKey[key]
		if p == nil {
			return false
		}
		if p.isReported(plan.PeerFailed) {
			return true
		}
		key = p.behind
	}
	return false
}

// begin takes note of a workload that is being rolled.
func (a *admission) begin(w *workload.Workload, doing []plan.Decision) {
	a.canaries.start(w, doing)
	a.peers.begin(w, a.following.follows(w.Key()))
}

// review looks at a workload that has changed, or whose patch or rollout has begun or ended.
func (a *admission) review(key workload.Key) {
	a.limits.review(key)
	a.waves.review(key)
}

// forget has everything looked for again.
func (a *admission) forget() {
	a.canaries.forget()
	a.waves.forget()
	a.limits.forget()
}
