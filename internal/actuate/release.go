package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// releaseAll makes every held workload due except those that rest.
func (d *debounce) releaseAll(now time.Time) {
	for _, p := range d.byKey {
		if p.isHeld() && !rests(p.held) {
			d.release(p, now)
		}
	}
}

// rest records whether a workload that is being reviewed waits as people have chosen.
func (p *pending) rest(chosen bool, now time.Time) {
	if p.rested && !chosen {
		p.woke = now
	}
	p.rested = chosen
}

// wake makes a workload that has changed due if it rests, waits for its pods or for a time that depends on them, or is one whose patch was refused as
// it was before. The notes on it may be gone, too. Its state is nil if it is gone.
func (d *debounce) wake(key workload.Key, w *workload.Workload, now time.Time) {
	p := d.byKey[key]
	if p == nil {
		return
	}
	p.noteAt = time.Time{}
	isRewritten := p.isRewritten(w)
	if isRewritten {
		p.tryAnew(p.first)
	}
	if isRewritten || rests(p.held) || p.held == plan.PodsStarting || p.held == plan.Aborted || !p.paced.IsZero() {
		d.release(p, now)
		d.moved(key)
	}
}

// rests reports whether a workload that is held for a reason waits because people chose so: for a time, or for something that they do. It waits for
// no other workload: there may be thousands of them, for days, and no event of others makes them be reviewed. Others wait for it only if it waits
// for a moment: see obstacle.soon.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }
