package actuate

import (
	"cmp"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// candidates are the workloads of a namespace that may go first with a change.
type candidates struct {
	index     *inventory.Index
	debounce  *debounce
	following *following
	timing    *timing
	peers     *failedPeers
	// best maps a change to the workload that goes before all others, or to nil if there is none. It is looked up once for each dispatch, and again
	// if that workload cannot go.
	best map[sourceChange]*workload.Workload
}

// forget drops the best ones, so that they are looked up again.
func (c *candidates) forget() { clear(c.best) }

// before returns the workload that goes before another one with a change, or nil if none does. It only returns a workload that is not known to be
// held by anything else, so that nobody waits for one that waits for people or cannot be patched.
func (c *candidates) before(w *workload.Workload, of sourceChange, source events.Source) *workload.Workload {
	best, known := c.best[of]
	if !known || best != nil && !c.canGo(best, source) {
		best = nil
		for _, peer := range c.index.Dependents(source) {
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

// goesBefore reports whether a workload goes before another one: the one of the lower wave does, and within a wave the one with fewer pods.
func goesBefore(w, other *workload.Workload) bool {
	return cmp.Or(
		cmp.Compare(w.Wave, other.Wave), cmp.Compare(w.Progress.Pods, other.Progress.Pods), cmp.Compare(w.ID.String(), other.ID.String()),
	) < 0
}

// canGo reports whether a workload has a pending change of a source, and is held by nothing except others of its namespace. The reason why it was
// last held may have gone since, for all of them at once, so whatever can be checked again is checked.
func (c *candidates) canGo(w *workload.Workload, source events.Source) bool {
	p := c.debounce.byKey[w.Key()]
	if !w.Tries() || p == nil || p.changes[source] == nil || p.attempts > 0 || w.Aborted || c.timing.stops(w.Key()) {
		return false
	}
	return p.held != plan.SourceOnHold && p.changes[source].change.Hold == "" && !c.isHeldFor(p)
}

// isHeldFor reports whether a workload was last held because of its own pods, or because of one that failed and has not recovered. Waiting for new
// files does not count, because that is short.
func (c *candidates) isHeldFor(p *pending) bool {
	return p.isReported(plan.PodsStarting) || p.isReported(plan.PeerFailed) && c.peers.has(p.behind)
}

// hasFailed reports whether the last patch of a workload failed, so that it waits for another attempt.
func (c *candidates) hasFailed(w *workload.Workload) bool {
	p := c.debounce.byKey[w.Key()]
	return p != nil && p.attempts > 0
}

// isAwaited reports whether any workload of the namespace except the given one has a pending change of the source that is not refused.
func (c *candidates) isAwaited(of sourceChange, source events.Source, but workload.Key) bool {
	return slices.ContainsFunc(c.index.Dependents(source), func(peer *workload.Workload) bool {
		p := c.debounce.byKey[peer.Key()]
		return peer.ID.Namespace == of.namespace && peer.Key() != but && p != nil && p.changes[source] != nil && !p.refused
	})
}

// isPending reports whether a change may be the pending one of any workload of the namespace. Each change of a pending event has its version there.
func (c *candidates) isPending(of sourceChange, source events.Source) bool {
	return slices.ContainsFunc(c.index.Dependents(source), func(peer *workload.Workload) bool {
		p := c.debounce.byKey[peer.Key()]
		return peer.ID.Namespace == of.namespace && p != nil && p.changes[source] != nil && hasVersion(&p.changes[source].change, of.version)
	})
}

func hasVersion(change *events.Change, version string) bool {
	for _, key := range change.Keys {
		if key.ChangedAt == version {
			return true
		}
	}
	return version == change.ResourceVersion || version == change.ChangedAt || version == change.CreatedAt
}

// isMissing reports whether any workload of the namespace was not rolled for a change, possibly because it waits.
func (c *candidates) isMissing(of sourceChange, source events.Source) bool {
	return slices.ContainsFunc(c.index.Dependents(source), func(peer *workload.Workload) bool {
		return peer.ID.Namespace == of.namespace && !of.isOf(peer)
	})
}

// isReady reports whether the pods of a workload exist, match its template, and are ready.
func isReady(w *workload.Workload) bool { return w.Tries() && w.Progress.State == workload.Complete }

// found returns the workload that went first with a change, judging by which workloads are rolled, and whether it is done with the change. It
// returns the zero Key if none did. If someone has replaced what a workload was rolled to, its record does not show that its pods got ready.
func (c *candidates) found(of sourceChange, source events.Source) (key workload.Key, done bool) {
	var first *workload.Workload
	for _, peer := range c.index.Dependents(source) {
		if peer.ID.Namespace != of.namespace || !of.isOf(peer) {
			continue
		}
		failed := c.peers.has(peer.Key())
		switch {
		case !failed && !c.following.follows(peer.Key()) && !peer.IsReplaced() && isReady(peer):
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
	return c.following.follows(w.Key()) && !c.following.waits(w.Key())
}
