package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// admission decides whether a workload may be rolled now. A workload only ever waits for something in its own namespace, except for slots.
type admission struct {
	besideReloader *besideReloader
	orders         *orders
	slots          *slots
	pace           *pace
}

// review looks at a workload that has changed or gone.
func (a *admission) review(key workload.Key) {
	a.orders.review(key)
	a.besideReloader.review(key)
}

// forget drops what no longer counts merely because time has passed: some rollouts wait for a time.
func (a *admission) forget() {
	a.slots.known = false
	a.pace.forget()
}

// obstacle is why a workload that is to be rolled must wait.
type obstacle struct {
	// reason is plan.None if there is no obstacle.
	reason plan.Reason
	// peer is the workload that it waits for, or one of them if there are several. It is nil if it waits for no other workload.
	peer *workload.Workload
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
	if why := a.orders.gate(w); why.reason != plan.None {
		return why
	}
	if end, waits := a.besideReloader.end(w.ID.Namespace, since); waits {
		return obstacle{reason: plan.ReloaderFirst, end: end}
	}
	if why, peer := a.orders.stop(w, owedBy(doing)); why != plan.None {
		return obstacle{reason: why, peer: peer}
	}
	if a.slots.needs(w) {
		return obstacle{reason: a.slots.full(w.ID.Namespace)}
	}
	return obstacle{}
}
