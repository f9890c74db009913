package actuate

import (
	"cmp"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// candidates are the workloads of a namespace that may go first with a change.
type candidates struct {
	index     *index
	gathering *debounce
	following *following
	timing    *timing
	peers     *failedPeers
	now       func() time.Time
	// best has the one that goes before all others, by change; nil if there is none. It is looked for once for each dispatch, and again when that
	// one cannot go.
	best map[sourceChange]*workload.Workload
}

// forget has the best ones looked for again.
func (c *candidates) forget() { clear(c.best) }

// before returns the workload that goes before another one with a change. Nil: none does. It is one that nothing else is known to hold, so that
// nobody waits for one that waits for people, or cannot be patched.
func (c *candidates) before(w *workload.Workload, of sourceChange, source events.Source) *workload.Workload {
	best, known := c.best[of]
	if !known || best != nil && !c.canGo(best, source) {
		best = nil
		for _, peer := range c.index.dependents(source) {
			if peer.ID.Namespace == of.namespace && (best == nil || goesBefore(peer, best)) && c.canGo(peer, source) {
				best = peer
			}
		}
		c.best[of] = best
	}
	if best == nil || best.Key() == w.Key() || best.Wave > w.Wave || w.Tries() && goesBefore(w, best) {
		return nil
	}
	return best
}

// goesBefore reports whether a workload goes before another one: that of the lower wave, and of those the one with fewer pods.
func goesBefore(w, other *workload.Workload) bool {
	return cmp.Or(
		cmp.Compare(w.Wave, other.Wave), cmp.Compare(w.Progress.Pods, other.Progress.Pods), cmp.Compare(w.ID.String(), other.ID.String()),
	) < 0
}

// canGo reports whether a workload has a change of a source pending, and is not held but for others of its namespace. What it was last held for may
// be over since, for all of them at once, so whatever can be checked again is.
func (c *candidates) canGo(w *workload.Workload, source events.Source) bool {
	p := c.gathering.byKey[w.Key()]
	if !w.Tries() || p == nil || p.changes[source] == nil || p.attempts > 0 || w.Aborted || c.timing.stops(w.Key()) {
		return false
	}
	return p.held != plan.SourceOnHold && p.changes[source].change.Hold == "" && !c.isHeldFor(p)
}

// isHeldFor reports whether a workload was last held for its own pods, or for one that failed and still is failed. What it waits for until its files
// are new is short.
func (c *candidates) isHeldFor(p *pending) bool {
	return p.isReported(plan.PodsStarting) || p.isReported(plan.PeerFailed) && c.peers.has(p.behind)
}

// hasFailed reports whether the last patch of a workload was not made, so that it waits for another attempt.
func (c *candidates) hasFailed(w *workload.Workload) bool {
	p := c.gathering.byKey[w.Key()]
	return p != nil && p.attempts > 0
}

// isAwaited reports whether a workload of the namespace, other than one, has a change of the source pending.
func (c *candidates) isAwaited(of sourceChange, source events.Source, but workload.Key) bool {
	return slices.ContainsFunc(c.index.dependents(source), func(peer *workload.Workload) bool {
		return peer.ID.Namespace == of.namespace && peer.Key() != but && c.gathering.has(peer.Key(), source)
	})
}

// isMissing reports whether a workload of the namespace was not rolled for a change, which may be because it waits.
func (c *candidates) isMissing(of sourceChange, source events.Source) bool {
	return slices.ContainsFunc(c.index.dependents(source), func(peer *workload.Workload) bool {
		return peer.ID.Namespace == of.namespace && !of.isOf(peer)
	})
}

// isReady reports whether the pods of a workload are there, of its template, and ready.
func isReady(w *workload.Workload) bool { return w.Tries() && w.Progress.State == workload.Complete }

// found returns the workload that went first with a change, as what is rolled says, and whether it is done with it. The zero Key: none did.
func (c *candidates) found(of sourceChange, source events.Source) (key workload.Key, done bool) {
	var first *workload.Workload
	for _, peer := range c.index.dependents(source) {
		if peer.ID.Namespace != of.namespace || !of.isOf(peer) {
			continue
		}
		failed := c.peers.has(peer.Key())
		switch {
		case !failed && !c.following.follows(peer.Key()) && isReady(peer):
			return workload.Key{}, true
		case (failed || c.isUnderWay(peer)) && peer.Tries() && (first == nil || goesBefore(peer, first)):
			first = peer
		}
	}
	if first == nil {
		return workload.Key{}, false
	}
	return first.Key(), false
}

// isUnderWay reports whether a rollout of a workload is in progress, or its pods have to stay ready, and it does not wait for people.
func (c *candidates) isUnderWay(w *workload.Workload) bool {
	return c.following.follows(w.Key()) && !w.Progress.Waits(c.now())
}
