package actuate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// unservedFor is how long what concerns the workloads of a kind waits for the API server to serve that. A CRD that is deleted and made again, or an
// API whose server is being repaired, takes minutes or hours; one that is gone for longer is not expected back.
const unservedFor = 24 * time.Hour

// kindPlace is where a kind is listed. An empty namespace is all of them.
type kindPlace struct{ kind, namespace string }

func (p kindPlace) has(w *workload.Workload) bool {
	return w.ID.Kind == p.kind && (p.namespace == "" || w.ID.Namespace == p.namespace)
}

// unserved has the kinds that the API server does not serve, and since when that is known. Whether their workloads are there is not.
type unserved map[kindPlace]time.Time

// unserve takes note that the API server does not serve a kind.
func (x *index) unserve(place kindPlace, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
}

// serve takes note that all workloads of a kind are known.
func (x *index) serve(place kindPlace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.unserved, place)
}

// isUnserved reports whether nobody knows if a workload is there, because its kind is not served.
func (x *index) isUnserved(key workload.Key, now time.Time) bool {
	return x.isUnservedIn(kindPlace{key.Kind, ""}, now) || x.isUnservedIn(kindPlace{key.Kind, key.Namespace}, now)
}

func (x *index) isUnservedIn(place kindPlace, now time.Time) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	since, is := x.unserved[place]
	return is && now.Sub(since) < unservedFor
}

// unservedKinds lists the kinds that are not served, in no order.
func (x *index) unservedKinds() []kindPlace {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.unserved))
}

// miss decides what becomes of a workload with changes that is not there.
func (d *dispatcher) miss(ctx context.Context, p *pending) {
	if d.index.isUnserved(p.key, d.now()) {
		d.gathering.holdUntil(p, plan.Unknown, d.now().Add(installInterval))
		return
	}
	d.gathering.drop(p)
	d.concluder.releaseAll(ctx, p, plan.WorkloadGone)
	d.gathering.releaseHeld(p.key.Namespace, d.now())
}

// missed keeps the sources of which events were taken while a kind was not served. Its workloads would have had them, and an earlier leader may
// have had them wait for just these.
type missed struct {
	index *index
	now   func() time.Time

	sources map[kindPlace]map[events.Source]struct{}
}

func newMissed(index *index, now func() time.Time) *missed {
	return &missed{index: index, now: now, sources: make(map[kindPlace]map[events.Source]struct{})}
}

// look takes note of the kinds that are not served.
func (m *missed) look() {
	for _, place := range m.index.unservedKinds() {
		if m.sources[place] == nil && m.index.isUnservedIn(place, m.now()) {
			m.sources[place] = make(map[events.Source]struct{})
		}
	}
}

// take takes note of an event of a source.
func (m *missed) take(source events.Source) {
	m.look()
	for _, sources := range m.sources {
		sources[source] = struct{}{}
	}
}

// advance asks for what the workloads of the kinds have missed that are served again, and for what they say that they wait for.
func (m *missed) advance(ask func(question)) {
	for place, sources := range m.sources {
		if m.index.isUnservedIn(place, m.now()) {
			continue
		}
		delete(m.sources, place)
		for source := range sources {
			for _, w := range m.index.dependents(source) {
				if place.has(w) {
					ask(question{workload: w.Key(), source: source})
				}
			}
		}
		for _, w := range m.index.all() {
			if place.has(w) {
				askOwed(w, ask)
			}
		}
	}
	m.look()
}
