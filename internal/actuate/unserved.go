package actuate

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

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

// served has how often kinds have come to be served that were not.
type served map[kindPlace]int

// unserve records that the API server does not serve a kind.
func (x *index) unserve(place kindPlace, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
}

// serve records that all workloads of a kind are known.
func (x *index) serve(place kindPlace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, was := x.unserved[place]; was {
		delete(x.unserved, place)
		x.served[place]++
	}
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

// servedAgain returns how often each kind has come to be served that was not.
func (x *index) servedAgain() served {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.served)
}

// miss decides what becomes of a workload with changes that is not there.
func (d *dispatcher) miss(ctx context.Context, p *pending) {
	if d.index.isUnserved(p.key, d.now()) {
		d.awaitKind(ctx, p)
		return
	}
	d.gathering.drop(p)
	d.concluder.releaseAll(ctx, p, plan.WorkloadGone)
	d.gathering.releaseHeld(p.key, d.now())
}

// awaitKind holds a workload until its kind may be served again.
func (d *dispatcher) awaitKind(ctx context.Context, p *pending) {
	why := obstacle{reason: plan.KindNotServed}
	if p.isReported(why.reason) {
		d.keep(p, why)
	} else {
		span := startPlan(ctx, d.tracer, p, p.seen)
		defer span.End()
		var doing []plan.Decision
		for _, c := range slices.SortedFunc(maps.Values(p.changes), bySource) {
			doing = append(doing, plan.Decision{Source: c.change.Source, Reason: why.reason})
		}
		d.hold(trace.ContextWithSpan(context.WithoutCancel(ctx), span), p, p.seen, doing, why)
	}
	d.gathering.schedule(p, d.now().Add(installInterval))
}

// returned asks for what workloads have missed while their kind was not served. It is not known which events came meanwhile: this leader, or an
// earlier one, may have taken them without a workload to pass them to.
type returned struct {
	index *index
	// asked has how often each kind had come back when its workloads were last asked for.
	asked map[kindPlace]int
}

func newReturned(index *index) *returned {
	return &returned{index: index, asked: make(map[kindPlace]int)}
}

// advance asks for all sources of the workloads of the kinds that are served again. Each question is answered in its turn, as when a leader begins.
func (r *returned) advance(ask func(question)) {
	for place, times := range r.index.servedAgain() {
		if r.asked[place] == times {
			continue
		}
		r.asked[place] = times
		for _, w := range r.index.all() {
			if place.has(w) {
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
