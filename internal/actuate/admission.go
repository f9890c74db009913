package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now. A workload only ever waits for something in its own namespace, except for slots.
type admission struct {
	timing         *timing
	pace           *pace
	peers          *failedPeers
	canaries       *canaries
	waves          *waves
	limits         *limits
	besideReloader *besideReloader
	debounce       *debounce
	following      *following
}

// obstacle is why a workload that is to be rolled must wait.
type obstacle struct {
	// reason is plan.None if there is no obstacle.
	reason plan.Reason
	// peer is the workload that it waits for, or one of them if there are several. It is nil if it waits for no other workload.
	peer *workload.Workload
	// awaits is what it waits for, if reason and peer do not say so.
	awaits awaited
	// end is when it has waited long enough. It is zero if that depends on others.
	end time.Time
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

// obstacle returns why a workload that is to be rolled must wait. Doing has the decisions that its patch would carry out, and since is when the
// first of their changes came.
func (a *admission) obstacle(w *workload.Workload, doing []plan.Decision, since time.Time) obstacle {
	if why := a.timing.stop(w); why.reason != plan.None {
		return why
	}
	if end, waits := a.besideReloader.end(w.ID.Namespace, since); waits {
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

// below returns what to wait for until the waves below a workload have finished. For a failed workload it returns the zero value, because that one
// may go earlier: see waitsFor.
func (a *admission) below(w *workload.Workload, source events.Source) awaited {
	if a.peers.has(w.Key()) {
		return awaited{}
	}
	return awaited{namespace: w.ID.Namespace, source: source, wave: w.Wave}
}

// waitsFor reports whether a workload must wait for the one that goes first, which is nil if there is none. A workload that failed does not wait for
// one that itself waits for the repair of a failed workload, because its roll may be that repair.
func (a *admission) waitsFor(w, first *workload.Workload) bool {
	return first != nil && (!a.peers.has(w.Key()) || !a.awaitsRepair(first.Key()))
}

// maxBehind is how many links of a chain of workloads that wait for each other are followed.
const maxBehind = 100

// awaitsRepair reports whether a workload waits for the repair of one that failed, directly or through others, as far as these were looked at.
func (a *admission) awaitsRepair(key workload.Key) bool {
	for range maxBehind {
		p := a.debounce.byKey[key]
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

// review reviews a workload that has changed, or whose patch or rollout has begun or ended.
func (a *admission) review(key workload.Key) {
	a.limits.review(key)
	a.waves.review(key)
}

// forget drops everything that is cached, so that it is looked up again.
func (a *admission) forget() {
	a.canaries.forget()
	a.waves.forget()
	a.limits.forget()
	a.pace.forget()
}
