package actuate

import "context"

// begin asks for a sync whose turn it is, and for those that the same annotation asks for. It does not where that was done
// before: then it goes on from there.
func (y *syncer) begin(ctx context.Context, s *forcedSync) {
	if !y.prepare(ctx, s) {
		return
	}
	target := y.target(s.seen)
	if repeat, asked := target.askedFor(s.change.ID()); asked && repeat >= s.repeat {
		s.repeat = repeat
		y.resume(ctx, s, target)
		return
	}
	syncs := []*forcedSync{s}
	if target.isCluster() {
		for _, sibling := range y.queue.popOwned(s.key.source, s.seen.Owner) {
			if y.prepare(ctx, sibling) {
				syncs = append(syncs, sibling)
				s.repeat = max(s.repeat, sibling.repeat)
			}
		}
	}
	ask, err := newSyncAsk(target, syncs)
	for _, together := range syncs {
		if err != nil {
			y.conclude(ctx, together, syncUnknown)
			continue
		}
		together.repeat, together.state, together.changed = s.repeat, syncAsking, false
		together.from, together.certain, together.tried = together.seen.SyncedVersion, true, true
		y.hold(together)
	}
	if err == nil {
		sent := s.newest().ctx
		y.engine.patching.Go(func() { y.send(sent, ask) })
	}
}

// prepare looks at the ExternalSecret as it is now. It is false where nothing is to be asked of it, which it then concludes.
func (y *syncer) prepare(ctx context.Context, s *forcedSync) bool {
	es := y.index.get(s.key.secret)
	if es == nil {
		y.conclude(ctx, s, syncGone)
		return false
	}
	scatter(y.byTarget, s.seen.Target, s)
	s.seen = es
	if reason := refusal(es, false); reason != syncUnknown {
		y.conclude(ctx, s, reason)
		return false
	}
	gather(y.byTarget, es.Target, s)
	return true
}

// resume goes on with what was asked before. Where another actuator asked, and it is synced since, it is done: what the
// sync has changed is not known any more.
func (y *syncer) resume(ctx context.Context, s *forcedSync, target syncTarget) {
	s.from, s.certain = s.seen.SyncedVersion, false
	if from, noted := target.annotations[annotationSyncedFrom]; noted && !target.isCluster() {
		s.from, s.certain = from, true
	}
	if !s.tried && s.isSynced() {
		y.conclude(ctx, s, syncDone)
		return
	}
	y.hold(s)
	y.wait(ctx, s, y.engine.options.Now())
}
