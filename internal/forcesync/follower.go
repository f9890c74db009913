package forcesync

import (
	"context"
	"log/slog"
	"maps"
	"slices"
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

// follower follows patched ExternalSecrets until they are synced and the objects that they write have changed.
type follower struct {
	tracker *tracker
	index   *Index
	log     *slog.Logger
	tracer  trace.Tracer
	now     func() time.Time
}

// follow begins to follow an ExternalSecret that was patched at the given time.
func (f *follower) follow(ctx context.Context, s *pendingSync, since time.Time) {
	now := f.now()
	s.failedBefore = s.seen.Failed
	s.deadline, s.slotUntil = now.Add(syncTimeout), now.Add(slotTime)
	if s.failedBefore {
		s.slotUntil = now.Add(failingSlotTime)
	}
	_, s.span = f.tracer.Start(s.newest().context(ctx), "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(identityAttributes(identify(s.seen))...))
	f.tracker.wait(s, syncing, s.slotUntil)
	f.review(ctx, s)
}

// review looks at an ExternalSecret after it has changed.
func (f *follower) review(ctx context.Context, s *pendingSync) {
	if s.state != syncing && s.state != untried {
		return
	}
	es := f.index.get(s.key.secret)
	if es == nil || es.UID != s.seen.UID {
		f.tracker.finish(ctx, s, gone, nil)
		return
	}
	f.tracker.pending.see(s, es)
	switch {
	case s.state == untried:
		if !es.Untried() {
			f.tracker.enqueue(ctx, s) // the operator may have read it before the change
		}
	case s.isSynced():
		f.synced(ctx, s)
	case es.Failed && !s.failedBefore:
		f.giveUpSlot(ctx, s)
	}
}

// synced continues with an ExternalSecret that the operator has synced.
func (f *follower) synced(ctx context.Context, s *pendingSync) {
	f.tracker.returnSlot(ctx, s)
	s.endWait(done.String())
	if s.changed || !s.rotation.NewContent() || s.seen.Target == (events.Source{}) {
		f.tracker.finish(ctx, s, done, nil)
		return
	}
	f.tracker.wait(s, checking, f.now().Add(changeWait))
}

// targetChanged is called when a Secret or ConfigMap, which ExternalSecrets may write, has changed.
func (f *follower) targetChanged(ctx context.Context, target events.Source) {
	syncs := slices.Collect(maps.Values(f.tracker.pending.byTarget[target]))
	if len(syncs) == 1 && len(f.tracker.pending.bySecret[syncs[0].key.secret]) == 1 && syncs[0].showsContent() {
		f.noteVisible(syncs[0])
	}
	for _, s := range syncs {
		if all := f.tracker.pending.bySecret[s.key.secret]; s.mayLack(all) && f.index.readsOnlyKV(s.seen, all) {
			s.unclear = true
		} else {
			s.changed = true
		}
	}
	for _, s := range syncs {
		if s.changed && s.state == checking {
			f.tracker.finish(ctx, s, done, nil)
		}
	}
}

// noteVisible records, for all syncs of the same change, that the store returns that change.
func (f *follower) noteVisible(shown *pendingSync) {
	if !shown.visible.IsZero() {
		return
	}
	now := f.now()
	for _, s := range f.tracker.pending.byKey {
		if s.key.source == shown.key.source && s.change.ID() == shown.change.ID() {
			s.visible = now
		}
	}
}

// giveUpSlot returns the slot of an ExternalSecret that the operator has failed to sync, or has not got to for a while. The operator retries
// by itself, and other syncs need not wait for that.
func (f *follower) giveUpSlot(ctx context.Context, s *pendingSync) {
	if s.seen.Failed && s.change.Verb == events.VerbDeleted {
		f.tracker.finish(ctx, s, sourceDeleted, nil)
		return
	}
	f.tracker.returnSlot(ctx, s)
	f.tracker.wait(s, syncing, s.deadline)
}

// expire handles a sync whose wait is over.
func (f *follower) expire(ctx context.Context, s *pendingSync) {
	switch {
	case s.state == retrying:
		f.tracker.enqueue(ctx, s)
	case s.state == checking:
		f.repeat(ctx, s)
	case s.state == untried:
		f.tracker.finish(ctx, s, neverTried, nil)
	case f.now().Before(s.deadline):
		f.giveUpSlot(ctx, s)
	case s.seen.Failed:
		f.tracker.finish(ctx, s, refused, nil)
	default:
		f.tracker.finish(ctx, s, timedOut, nil)
	}
}

// repeat asks again for a sync that changed nothing, up to maxRepeats times, and once for one that may have changed what was written.
func (f *follower) repeat(ctx context.Context, s *pendingSync) {
	switch {
	case s.unclear && (s.repeat > 0 || s.isCurrent()):
		f.tracker.finish(ctx, s, done, nil)
		return
	case s.repeat == maxRepeats || s.isCurrent():
		f.tracker.finish(ctx, s, noChange, nil)
		return
	}
	s.repeat++
	f.log.DebugContext(s.newest().context(ctx), "sync may have changed nothing; repeating",
		"externalsecret", s.key.secret.Name, "namespace", s.key.secret.Namespace, "repeat", s.repeat)
	f.tracker.enqueue(ctx, s)
}
