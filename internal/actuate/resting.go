package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// heldPending are workloads that are held, by namespace.
type heldPending map[string]map[workload.Key]*pending

func (h heldPending) add(p *pending) {
	if h[p.key.Namespace] == nil {
		h[p.key.Namespace] = make(map[workload.Key]*pending)
	}
	h[p.key.Namespace][p.key] = p
}

func (h heldPending) remove(p *pending) {
	delete(h[p.key.Namespace], p.key)
	if len(h[p.key.Namespace]) == 0 {
		delete(h, p.key.Namespace)
	}
}

// rests reports whether a workload that is held for a reason waits by the choice of people: for a time, or for what they do. It waits for nobody
// else: there may be thousands, for days, and nothing that others do has them looked at. Nobody waits for it but for a moment: see obstacle.soon.
func rests(why plan.Reason) bool {
	switch why {
	case plan.OnHold, plan.SourceOnHold, plan.WindowClosed, plan.RolledRecently, plan.RolledTooOften, plan.Pausing:
		return true
	default:
		return false
	}
}

// rest takes note of whether a workload that is looked at rests, or waits for the delay that somebody has set for its files.
func (p *pending) rest(rests bool, now time.Time) {
	if p.rested && !rests {
		p.woke = now
	}
	p.rested = rests
}

// wake makes a workload due if it rests, after it has changed. What was noted of it may be gone.
func (d *debounce) wake(key workload.Key, now time.Time) {
	if p := d.byKey[key]; p != nil {
		p.noteAt = time.Time{}
	}
	if p := d.resting[key.Namespace][key]; p != nil {
		d.release(p, now)
	}
}
