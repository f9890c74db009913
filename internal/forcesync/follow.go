package forcesync

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// syncTimeout is how long to wait for the operator to sync an ExternalSecret.
	syncTimeout = 5 * time.Minute
	// slotTime is how long an ExternalSecret that the operator does not sync keeps its slot. After that, the operator is late anyway, and
	// other syncs need not wait for it.
	slotTime = 30 * time.Second
	// failingSlotTime is the slotTime of an ExternalSecret whose last sync failed. It is shorter, because if the sync fails again, its status
	// does not change, and the failure cannot be seen.
	failingSlotTime = 3 * time.Second
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
	now, keeps := y.host.Now(), slotTime
	if s.seen.Failed {
		keeps = failingSlotTime
	}
	s.deadline = now.Add(syncTimeout)
	_, s.wait = y.host.Tracer.Start(s.context(ctx), "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(identityAttributes(identify(s.seen))...))
	y.await(s, syncing, now.Add(keeps))
	y.review(ctx, s)
}

// review looks at an ExternalSecret after it has changed.
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
			y.enqueue(ctx, s) // the operator may have read it before the change
		}
	case s.isSynced():
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
	y.await(s, checking, y.host.Now().Add(changeWait))
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (y *Syncer) targetChanged(ctx context.Context, target events.Source) {
	var syncs []*pendingSync
	for _, es := range y.index.linked(y.index.targets, target) {
		for _, s := range y.pending[nameOf(es)] {
			if s.state != queued || s.repeat > 0 { // Before the first patch, no change is due to the sync.
				syncs = append(syncs, s)
			}
		}
	}
	if len(syncs) == 1 && len(y.pending[nameOf(syncs[0].seen)]) == 1 && syncs[0].showsContent() {
		y.noteVisible(syncs[0])
	}
	for _, s := range syncs {
		if all := y.pending[nameOf(s.seen)]; s.mayLack(all) && y.index.readsOnlyKV(s.seen, all) {
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

// noteVisible records, for all syncs of the same change, that the store returns that change.
func (y *Syncer) noteVisible(shown *pendingSync) {
	if !shown.visible.IsZero() {
		return
	}
	now := y.host.Now()
	for _, all := range y.pending {
		if s := all[shown.change.Source]; s != nil && s.change.ID() == shown.change.ID() {
			s.visible = now
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
	y.await(s, syncing, s.deadline)
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
	case y.host.Now().Before(s.deadline):
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
	y.host.Log.DebugContext(s.context(ctx), "sync may have changed nothing; repeating",
		"externalsecret", s.seen.Name, "namespace", s.seen.Namespace, "repeat", s.repeat)
	y.enqueue(ctx, s)
}
