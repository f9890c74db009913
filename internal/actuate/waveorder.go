package actuate

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// waveOrder has the workloads of a namespace that depend on a source, those of the lowest wave first. A workload that was found finished with the
// source is not checked again until reopen is called for it, or its time has come. So after a change of a source that many workloads read, each of
// them is checked a few times, instead of all of them whenever one has finished.
type waveOrder struct {
	keys  []workload.Key
	place map[workload.Key]int
	// links is what index.CountLinks returned when the order was made.
	links uint64
	// open are the places of those that may be unfinished, and isOpen has them by place. Returning are those that are finished until a time.
	open      ordered[int]
	isOpen    []bool
	returning ordered[returning]
}

// returning is the place of a workload that may be unfinished again at a time.
type returning struct {
	at    time.Time
	place int
}

func newWaveOrder(dependents []*workload.Workload, links uint64) *waveOrder {
	slices.SortFunc(dependents, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.ID.Kind, b.ID.Kind), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	o := &waveOrder{
		place: make(map[workload.Key]int, len(dependents)), links: links,
		open:      ordered[int]{less: func(a, b int) bool { return a < b }},
		returning: ordered[returning]{less: func(a, b returning) bool { return a.at.Before(b.at) }},
	}
	for at, w := range dependents {
		o.keys = append(o.keys, w.Key())
		o.place[w.Key()] = at
		o.open.items = append(o.open.items, at)
		o.isOpen = append(o.isOpen, true)
	}
	return o
}

// reopen makes the workload at a place be checked again.
func (o *waveOrder) reopen(place int) {
	if !o.isOpen[place] {
		o.isOpen[place] = true
		heap.Push(&o.open, place)
	}
}

// advance makes the workloads whose time has come be checked again.
func (o *waveOrder) advance(now time.Time) {
	for len(o.returning.items) > 0 && !o.returning.items[0].at.After(now) {
		o.reopen(o.returning.items[0].place)
		heap.Pop(&o.returning)
	}
}

// first returns the first workload that may be unfinished, and false if there is none.
func (o *waveOrder) first() (workload.Key, bool) {
	if len(o.open.items) == 0 {
		return workload.Key{}, false
	}
	return o.keys[o.open.items[0]], true
}

// pass marks the first workload as finished, until the given time if that is not zero.
func (o *waveOrder) pass(until time.Time) {
	place := o.open.items[0]
	o.isOpen[place] = false
	heap.Pop(&o.open)
	if !until.IsZero() {
		heap.Push(&o.returning, returning{at: until, place: place})
	}
}
