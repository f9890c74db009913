package actuate

import (
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// returned asks for what workloads have missed while their kind was not served. Those that were known meanwhile got their events. But an actuator
// that began without the kind, this one or that of an earlier leader, may have taken events without a workload to pass them to.
type returned struct {
	index *inventory.Index
	// asked has how often each kind had come back when its workloads were last asked for.
	asked map[inventory.Place]int
}

func newReturned(index *inventory.Index) *returned {
	return &returned{index: index, asked: make(map[inventory.Place]int)}
}

// advance asks for all sources of the workloads of the kinds that are served again. Each question is answered in its turn, as when a leader begins.
func (r *returned) advance(ask func(question)) {
	for place, times := range r.index.ServedAgain() {
		if r.asked[place] == times {
			continue
		}
		r.asked[place] = times
		for _, w := range r.index.All() {
			if place.Has(w) {
				askAll(w, ask)
			}
		}
	}
}

// askAll asks for the last events of all sources of a workload.
func askAll(w *workload.Workload, ask func(question)) {
	for _, source := range append(w.Recorded(), w.Unrecorded()...) {
		ask(question{workload: w.Key(), source: source, why: recallReturned})
	}
	askOwed(w, ask)
}
