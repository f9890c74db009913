package forcesync

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	// syncTimeout is how long to wait for the operator to sync an ExternalSecret.
	syncTimeout = 5 * time.Minute
	// minSlotTime and maxSlotTime bound how long an ExternalSecret that is not synced keeps its slot: slotFactor times as long as the last sync took.
	minSlotTime, maxSlotTime = 2 * time.Second, 30 * time.Second
	slotFactor               = 4
	// changeWait is how long to wait, after a sync, for an event that says that what it writes has changed. The event mostly arrives before
	// the sync is seen.
	changeWait = 3 * time.Second
	// maxRepeats is how often a sync that changed nothing is repeated: a standby of the store may have answered with the old version.
	maxRepeats = 2
	// serverLag is how long after the first server of a store the other servers may take to return a change.
	serverLag = 3 * time.Second
)

// follow begins to follow an ExternalSecret that was patched at the given time, until it is synced and what it writes has changed.
func (y *Syncer) follow(ctx context.Context, s *pendingSync, since time.Time) {
	s.asked = y.Now()
	_, s.wait = y.Tracer.Start(s.context(ctx), "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(identityAttributes(identify(s.seen))...))
	y.await(s, syncing, s.asked.Add(y.slotTime()))
	y.review(ctx, s)
}

// slotTime returns how long an ExternalSecret that is not synced keeps its slot. Some of those that the operator ignores, and of those that fail again,
// cannot be told from those that it has not got to. But other syncs show how fast it is: if this one takes several times as long, they need not wait.
func (y *Syncer) slotTime() time.Duration {
	return min(max(slotFactor*y.lastTook, minSlotTime), maxSlotTime)
}

// review looks at the ExternalSecret of a sync, which may have changed.
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
		if !before.Failed { // The operator retries a failure with delays of its own.
			y.lastTook = y.Now().Sub(s.asked)
		}
		y.synced(ctx, s)
	case es.Failed && !before.Failed:
		y.giveUpSlot(ctx, s)
	}
}

// synced continues with an ExternalSecret that the operator has synced.
func (y *Syncer) synced(ctx context.Context, s *pendingSync) {
	y.returnSlot(ctx, s)
	s.endWait(string(done))
	if s.changed || s.isOfTemplate() || !s.rotation.NewContent() || s.seen.Target == (events.Source{}) {
		y.finish(ctx, s, done, nil)
		return
	}
	y.await(s, checking, y.Now().Add(changeWait))
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (y *Syncer) targetChanged(ctx context.Context, target events.Source) {
	var syncs []*pendingSync
	for _, es := range y.index.find(targetKey(target)) {
		for _, s := range y.pending[nameOf(es)] {
			if s.state != queued || s.repeat > 0 { // Before the first patch, no change is due to the sync.
				syncs = append(syncs, s)
			}
		}
	}
	if len(syncs) == 1 && len(y.pending[nameOf(syncs[0].seen)]) == 1 && syncs[0].showsContent() {
		y.markVisible(syncs[0])
	}
	for _, s := range syncs {
		if all := y.pending[nameOf(s.seen)]; s.mayLack(all) && y.readsOnlyKV(s.seen, all) {
			s.unclear = true
		} else {
			s.changed = true
		}
	}
	for _, s := range syncs {
		if s.changed && s.state == checking {
			y.finish(ctx, s, done, nil)
		}
	}
}

// readsOnlyKV reports whether an ExternalSecret reads nothing that may differ in each answer, as far as its syncs show it.
func (y *Syncer) readsOnlyKV(es *externalsecret.ExternalSecret, syncs group) bool {
	rotations := make([]externalsecret.Rotation, 0, len(syncs))
	for _, s := range syncs {
		rotations = append(rotations, s.rotation)
	}
	return es.ReadsOnlyKV(y.index.store, rotations)
}

// markVisible records, for all syncs of the same change, that the store returns that change.
func (y *Syncer) markVisible(shown *pendingSync) {
	if !shown.visible.IsZero() {
		return
	}
	for _, all := range y.pending {
		if s := all[shown.change.Source]; s != nil && s.change.ID() == shown.change.ID() {
			s.visible = y.Now()
		}
	}
}

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync, or has not got to for a while. The operator retries
// by itself, and other syncs need not wait for that.
func (y *Syncer) giveUpSlot(ctx context.Context, s *pendingSync) {
	if s.seen.Failed && s.change.Verb == events.VerbDeleted {
		y.finish(ctx, s, sourceDeleted, nil)
		return
	}
	y.returnSlot(ctx, s)
	y.await(s, syncing, s.asked.Add(syncTimeout))
}

// expire handles a sync whose state ends with time.
func (y *Syncer) expire(ctx context.Context, s *pendingSync) {
	switch {
	case s.state == retrying:
		y.enqueue(ctx, s)
	case s.state == checking:
		y.repeat(ctx, s)
	case s.state == untried:
		y.finish(ctx, s, neverTried, nil)
	case y.Now().Before(s.asked.Add(syncTimeout)):
		y.giveUpSlot(ctx, s)
	case s.seen.Failed:
		y.finish(ctx, s, refused, nil)
	default:
		y.finish(ctx, s, timedOut, nil)
	}
}

// repeat asks again for a sync that changed nothing, up to maxRepeats times, and once for one that may have changed what was written.
func (y *Syncer) repeat(ctx context.Context, s *pendingSync) {
	switch {
	case s.unclear && (s.repeat > 0 || s.isCurrent()):
		y.finish(ctx, s, done, nil)
		return
	case s.repeat == maxRepeats || s.isCurrent():
		y.finish(ctx, s, noChange, nil)
		return
	}
	s.repeat++
	y.Log.DebugContext(s.context(ctx), "sync may have changed nothing; repeating",
		"externalsecret", s.seen.Name, "namespace", s.seen.Namespace, "repeat", s.repeat)
	y.enqueue(ctx, s)
}
