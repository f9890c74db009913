package forcesync

import (
	"context"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// next removes and returns the next sync that may be patched, or nil if none may be.
func (y *Syncer) next() *pendingSync {
	if y.slots.Free() <= 0 {
		return nil // Many may wait, and this is called with each event.
	}
	if s := y.turns.Pop(y.slots.MayTake); s != nil {
		return s
	}
	return y.last.Pop(y.slots.MayTake)
}

// start sends the patch of a sync whose turn it is. If a ClusterExternalSecret created the ExternalSecret, the patch is also for its siblings. If
// the patch was already made, start follows it instead.
func (y *Syncer) start(ctx context.Context, s *pendingSync) {
	if !y.prepare(ctx, s) {
		return
	}
	to := targetOf(s.seen, y.index.owner(s.seen))
	if repeat, ok := to.asked(s.change.ID()); ok && repeat >= s.repeat {
		s.repeat = repeat
		y.resume(ctx, s, to)
		return
	}
	syncs := []*pendingSync{s}
	if to.isCluster() {
		syncs = append(syncs, y.siblings(ctx, s)...)
	}
	for _, one := range syncs {
		one.repeat, one.state, one.changed, one.unclear = s.repeat, patching, false, one.unclear && s.repeat > 0
		one.from, one.certain = one.seen.SyncedVersion, true
		y.takeSlot(ctx, one)
	}
	y.send(ctx, newPatch(to, syncs))
}

// siblings removes from the queue and returns the other syncs that the patch for s also serves. s takes over the highest of their repeats.
func (y *Syncer) siblings(ctx context.Context, s *pendingSync) []*pendingSync {
	var syncs []*pendingSync
	for _, all := range y.pending {
		sibling := all[s.change.Source]
		if sibling == nil || sibling == s || sibling.state != queued || sibling.seen.Owner != s.seen.Owner {
			continue
		}
		y.turns.Remove(sibling)
		y.last.Remove(sibling)
		if y.prepare(ctx, sibling) {
			syncs = append(syncs, sibling)
			s.repeat = max(s.repeat, sibling.repeat)
		}
	}
	return syncs
}

// prepare updates a sync to the current state of its ExternalSecret. It reports whether there is something to patch; if not, it finishes
// the sync, or makes it wait for the operator to try a new ExternalSecret: whoever may not read a secret learns from that nothing about it.
func (y *Syncer) prepare(ctx context.Context, s *pendingSync) bool {
	es := y.index.get(nameOf(s.seen))
	if es == nil {
		y.finish(ctx, s, gone, nil)
		return false
	}
	s.seen = es
	if es.Untried() {
		y.await(s, untried, y.host.Now().Add(syncTimeout))
		return false
	}
	if why, ok := refusal(es, false); ok {
		y.finish(ctx, s, why, nil)
		return false
	}
	if s.repeat > 0 && s.changed && !s.unclear {
		y.finish(ctx, s, done, nil) // the last patch has turned out to be enough
		return false
	}
	return true
}

// resume follows an earlier patch. If another actuator made it and the operator has synced since, the sync is done: what that sync changed is
// no longer known.
func (y *Syncer) resume(ctx context.Context, s *pendingSync, to target) {
	if s.from, s.certain = to.syncedFrom(); !s.certain {
		s.from = s.seen.SyncedVersion
	}
	if isForeign := s.sent.IsZero() && s.failures == 0; isForeign && s.isSynced() {
		y.finish(ctx, s, done, nil)
		return
	}
	y.takeSlot(ctx, s)
	y.follow(ctx, s, y.host.Now())
}

// answered handles the answer to a patch. A denied patch for a change that is stale by now does not count, because it says nothing about the patch
// for the newer change.
func (y *Syncer) answered(ctx context.Context, a answer) {
	for _, s := range a.syncs {
		isStale := a.event != s.change.ID()
		if a.err != nil {
			if kube.IsDenied(a.err) && !isStale {
				s.denials++
			}
			y.retry(ctx, s, a.err)
			continue
		}
		s.sent, s.failures, s.denials = a.sent, 0, 0
		if isStale {
			y.enqueue(ctx, s)
			continue
		}
		if a.after != nil {
			// Use the answer itself: the index may not have had the last sync yet.
			s.from = a.after.SyncedVersion
		}
		y.follow(ctx, s, s.sent)
	}
}

// retry schedules another attempt after a failed patch, from the state that is known then. After too many denials, it gives up.
func (y *Syncer) retry(ctx context.Context, s *pendingSync, err error) {
	if s.denials >= kube.MaxDenials {
		y.finish(ctx, s, denied, &events.RejectError{Reason: events.ReasonPatchDenied, Err: err})
		return
	}
	s.failures++
	delay := backoff.Nth(kube.PatchBackoff(), s.failures)
	y.host.Log.WarnContext(s.context(ctx), "externalsecret not patched; retrying",
		"externalsecret", s.seen.Name, "namespace", s.seen.Namespace, "attempt", s.failures, "retry_in", delay, "err", err)
	y.host.PatchFailed(ctx)
	y.returnSlot(ctx, s)
	y.await(s, retrying, y.host.Now().Add(delay))
}
