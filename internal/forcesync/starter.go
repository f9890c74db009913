package forcesync

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// starter patches the syncs whose turn it is, and handles the answers.
type starter struct {
	tracker  *tracker
	follower *follower
	patcher  *patcher
	index    *Index
	log      *slog.Logger
	now      func() time.Time
	// failed is called for each failed patch that will be retried.
	failed func(context.Context)
}

// start sends the patch of a sync. If a ClusterExternalSecret created the ExternalSecret, the patch is also for its siblings. If the patch was
// already made, start follows it instead.
func (b *starter) start(ctx context.Context, s *pendingSync) {
	if !b.prepare(ctx, s) {
		return
	}
	to := targetOf(s.seen, b.index.owner(s.seen))
	if repeat, ok := to.asked(s.change.ID()); ok && repeat >= s.repeat {
		s.repeat = repeat
		b.resume(ctx, s, to)
		return
	}
	syncs := []*pendingSync{s}
	if to.isCluster() {
		syncs = append(syncs, b.siblings(ctx, s)...)
	}
	what, err := newPatch(to, syncs)
	if err != nil {
		for _, one := range syncs {
			b.tracker.finish(ctx, one, unknown, nil)
		}
		return
	}
	for _, one := range syncs {
		one.repeat, one.state, one.changed, one.unclear = s.repeat, patching, false, one.unclear && s.repeat > 0
		one.from, one.certain, one.patched = one.seen.SyncedVersion, true, true
		b.tracker.takeSlot(ctx, one)
	}
	b.patcher.start(ctx, what)
}

// siblings returns the other queued syncs that the patch for s also serves. s takes over the highest of their repeats.
func (b *starter) siblings(ctx context.Context, s *pendingSync) []*pendingSync {
	var syncs []*pendingSync
	for _, sibling := range b.tracker.popOwned(s.key.source, s.seen.Owner) {
		if b.prepare(ctx, sibling) {
			syncs = append(syncs, sibling)
			s.repeat = max(s.repeat, sibling.repeat)
		}
	}
	return syncs
}

// prepare updates a sync to the current state of its ExternalSecret. It reports whether there is something to patch; if not, it finishes
// the sync, or makes it wait for the operator to try a new ExternalSecret: whoever may not read a secret learns from that nothing about it.
func (b *starter) prepare(ctx context.Context, s *pendingSync) bool {
	es := b.index.get(s.key.secret)
	if es == nil {
		b.tracker.finish(ctx, s, gone, nil)
		return false
	}
	b.tracker.pending.see(s, es)
	if es.Untried() {
		b.tracker.wait(s, untried, b.now().Add(syncTimeout))
		return false
	}
	if why, ok := refusal(es, false); ok {
		b.tracker.finish(ctx, s, why, nil)
		return false
	}
	if s.repeat > 0 && s.changed && !s.unclear {
		b.tracker.finish(ctx, s, done, nil) // the last patch has turned out to be enough
		return false
	}
	return true
}

// resume follows an earlier patch. If another actuator made it and the operator has synced since, the sync is done: what that sync changed is
// no longer known.
func (b *starter) resume(ctx context.Context, s *pendingSync, to target) {
	if s.from, s.certain = to.syncedFrom(); !s.certain {
		s.from = s.seen.SyncedVersion
	}
	if !s.patched && s.isSynced() {
		b.tracker.finish(ctx, s, done, nil)
		return
	}
	b.tracker.takeSlot(ctx, s)
	b.follower.follow(ctx, s, b.now())
}

// answered handles the answer to a patch.
func (b *starter) answered(ctx context.Context, a answer) {
	for _, s := range a.patch.syncs {
		switch {
		case a.err != nil:
			b.retry(ctx, s, a.err)
		case s.stale:
			s.failures, s.denials, s.backoff = 0, 0, kube.PatchBackoff()
			b.tracker.enqueue(ctx, s)
		default:
			if a.after != nil {
				// Use the answer itself: the index may not have had the last sync yet.
				s.from = a.after.SyncedVersion
			}
			s.sent, s.failures, s.denials, s.backoff = a.sent, 0, 0, kube.PatchBackoff()
			b.follower.follow(ctx, s, a.sent)
		}
	}
}

// retry schedules another attempt after a failed patch, from the state that is known then. After too many denials, it gives up. A denied
// patch for a stale change does not count, because it says nothing about the patch for the newer change.
func (b *starter) retry(ctx context.Context, s *pendingSync, err error) {
	s.failures++
	if kube.IsDenied(err) && !s.stale {
		s.denials++
	}
	s.stale = false
	if s.denials >= kube.MaxDenials {
		b.tracker.finish(ctx, s, denied, &events.RejectError{Reason: events.ReasonPatchDenied, Err: err})
		return
	}
	delay := s.backoff.Step()
	b.log.WarnContext(s.newest().context(ctx), "externalsecret not patched; retrying",
		"externalsecret", s.key.secret.Name, "namespace", s.key.secret.Namespace, "attempt", s.failures, "retry_in", delay, "err", err)
	b.failed(ctx)
	b.tracker.returnSlot(ctx, s)
	b.tracker.wait(s, retrying, b.now().Add(delay))
}
