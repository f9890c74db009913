package forcesync

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	// An ExternalSecret that is not synced keeps its slot for slotFactor times the duration of the last sync, within these limits.
	minSlotTime, maxSlotTime, slotFactor = 2 * time.Second, 30 * time.Second, 4
	changeWait                           = 3 * time.Second // how long to wait after a sync for the event of the written object
)

// follow begins to follow an ExternalSecret that was patched at the given time, until it is synced and the written object has changed.
func (y *Syncer) follow(ctx context.Context, s *pendingSync, since time.Time) {
	s.asked = y.Now()
	_, s.wait = y.Tracer.Start(s.context(ctx), "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(identityAttributes(identify(s.seen))...))
	// The operator may ignore an ExternalSecret, or not have reached it. If that takes much longer than the last sync, others need not wait.
	took := y.lastTook
	y.await(s, syncing, s.asked.Add(min(max(slotFactor*cmp.Or(took, maxSlotTime), minSlotTime), maxSlotTime)))
	y.review(ctx, s)
	y.lastTook = took // Syncs from before the wait do not count.
}

func (y *Syncer) review(ctx context.Context, s *pendingSync) {
	if s.state != syncing && s.state != untried {
		return
	}
	before, es := s.seen, y.index.get(nameOf(s.seen))
	if es == nil || es.UID != before.UID {
		y.finish(ctx, s, gone, nil)
		return
	}
	s.seen = es
	switch {
	case s.state == untried:
		if !es.Untried() {
			y.enqueue(ctx, s) // The operator may have read it before the change.
		}
	case s.isSynced():
		if !before.Failed { // The operator retries failures with its own delays.
			y.lastTook = y.Now().Sub(s.asked)
		}
		y.returnSlot(ctx, s)
		s.endWait(string(done))
		switch {
		case y.awaitLag(s):
		case s.changed || s.mayChangeNothing():
			y.finish(ctx, s, done, nil)
		default:
			y.await(s, checking, y.Now().Add(changeWait))
		}
	case s.obstacle() != "":
		y.finish(ctx, s, s.obstacle(), nil)
	case es.Failed && !before.Failed:
		y.giveUpSlot(ctx, s)
	}
}

// awaitLag schedules another sync for the end of the store's lag, and returns false if the last sync was after it.
func (y *Syncer) awaitLag(s *pendingSync) bool {
	end := s.lagEnd()
	if s.repeat == lastRepeat || !s.seen.RefreshTime.Before(end) {
		return false
	}
	y.await(s, lagging, end)
	return true
}

// mustWait reports whether a sync must not begin before the end of the store's lag, because it would have to be repeated then. A later change does
// not prolong the wait: otherwise, a secret that is written all the time would never be synced.
func (y *Syncer) mustWait(s *pendingSync) bool {
	if s.until.IsZero() {
		s.once = ""
		if end := s.lagEnd(); y.Now().Before(end) {
			if s.once = y.readsOnce(s); s.once != "" {
				s.until = end
			}
		}
	}
	return y.Now().Before(s.until)
}

// readsOnce returns why an ExternalSecret must not be synced more often than necessary, or "": each sync may return other data, as with engines other
// than KV, and would then roll the readers of the written object.
func (y *Syncer) readsOnce(s *pendingSync) reason {
	var rotations []externalsecret.Rotation
	for _, other := range y.pending[nameOf(s.seen)] {
		rotations = append(rotations, other.rotation)
	}
	switch {
	case s.seen.Unsteady != "":
		return onceForTemplate
	case !s.seen.ReadsOnlyKV(y.index.store, rotations):
		return onceForEngine
	}
	return ""
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (y *Syncer) targetChanged(ctx context.Context, target events.Source) {
	var syncs []*pendingSync
	for _, es := range y.index.find(targetKey(target)) {
		for _, s := range y.pending[nameOf(es)] {
			// Before the first patch, no change comes from the sync. A sync that waits for its turn after the store's lag was patched before that.
			if isBefore := (s.state == queued || s.state == lagging) && s.sent.IsZero(); !isBefore || s.repeat > 0 {
				syncs = append(syncs, s)
			}
		}
	}
	for _, s := range syncs {
		isUnclear := y.isUnclear(s)
		s.unclear, s.changed = s.unclear || isUnclear, s.changed || !isUnclear
	}
	for _, s := range syncs {
		if s.changed && s.state == checking {
			y.finish(ctx, s, done, nil)
		}
	}
}

// isUnclear reports whether the written object may have changed without the change that the sync is for. A server that lags behind has the changes in
// order, so only the newest may be missing.
func (y *Syncer) isUnclear(s *pendingSync) bool {
	isPatched := s.state >= patching && s.state != retrying
	if !isPatched || s.repeat > 0 || s.isOfTemplate() || s.change.Store.Engine != events.EngineKV {
		return false
	}
	others, newest := y.pending[nameOf(s.seen)], true
	for _, other := range others {
		newest = newest && (other.isOfTemplate() || !other.change.Time.After(s.change.Time))
	}
	return (s.superseded || newest && len(others) > 1) && y.readsOnce(s) == ""
}

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync or has not reached. The operator retries by itself.
func (y *Syncer) giveUpSlot(ctx context.Context, s *pendingSync) {
	y.returnSlot(ctx, s)
	y.await(s, syncing, s.asked.Add(syncTimeout))
}
