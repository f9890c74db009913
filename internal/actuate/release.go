package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

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
	if isRewritten || rests(p.held) || p.held == plan.PodsStarting || !p.paced.IsZero() {
		d.release(p, now)
		d.moved(key)
	}
}

// releaseHeld makes the workloads due that an event at a workload of their namespace may have released: those that wait for that workload, those
// whose lower waves are finished, and those for which it is not known what they wait for. Those that wait for a slot get their turn when there is
// one.
func (d *debounce) releaseHeld(key workload.Key, now time.Time) {
	d.releaseThose(awaited{any: true, namespace: key.Namespace}, now)
	d.releaseThose(awaited{workload: key}, now)
	for of := range d.holds.waves[key.Namespace] {
		if d.finished(of) {
			d.releaseThose(of, now)
		}
	}
}

// releaseNamespace makes all held workloads of a namespace due, after an event that may change what any of them waits for. Those that wait for a
// slot get their turn when there is one.
func (d *debounce) releaseNamespace(namespace string, now time.Time) {
	for of, held := range d.holds.by {
		if of.slot {
			continue
		}
		for _, p := range held {
			if p.key.Namespace == namespace {
				d.release(p, now)
			}
		}
	}
}

// releaseOne makes a workload due if it waits for others. One that waits for a slot gets its turn when there is one.
func (d *debounce) releaseOne(key workload.Key, now time.Time) {
	if p := d.byKey[key]; p != nil && p.heldFor != (awaited{}) && !p.heldFor.slot {
		d.release(p, now)
	}
}

// releaseAll makes every held workload due except those that rest.
func (d *debounce) releaseAll(now time.Time) {
	for of := range d.holds.by {
		d.releaseThose(of, now)
	}
}

func (d *debounce) releaseThose(of awaited, now time.Time) {
	for _, p := range d.holds.by[of] {
		d.release(p, now)
	}
}
