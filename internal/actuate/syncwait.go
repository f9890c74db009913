package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// answered takes what became of a patch.
func (y *syncer) answered(ctx context.Context, a syncAnswer) {
	for _, s := range a.ask.syncs {
		switch {
		case s.stale:
			y.enqueue(s)
		case a.err != nil:
			y.failed(ctx, s, a.err)
		default:
			if a.after != nil {
				// By the answer itself: the index may not have known the last sync.
				s.from = a.after.SyncedVersion
			}
			s.failures = 0
			y.wait(ctx, s, a.at)
		}
	}
}

// failed has a patch that did not succeed made again, of what is known by then, or gives up.
func (y *syncer) failed(ctx context.Context, s *forcedSync, err error) {
	if kube.IsDenied(err) && s.failures+1 >= kube.MaxDenials {
		for _, t := range s.tickets {
			t.err = &events.RejectError{Reason: events.ReasonPatchDenied, Err: err}
		}
		y.conclude(ctx, s, syncDenied)
		return
	}
	delay := min(retryFirst<<min(s.failures, 10), retryMost)
	s.failures++
	y.engine.log.WarnContext(s.newest().ctx, "an externalsecret could not be asked to sync; it will be tried again",
		"externalsecret", s.key.secret.Name, "namespace", s.key.secret.Namespace, "attempt", s.failures, "retry", delay, "err", err)
	y.engine.metrics.patchFailed(ctx, kindExternalSecret)
	y.letGo(s)
	s.state, s.due = syncRetrying, y.engine.options.Now().Add(delay)
}

// wait watches an ExternalSecret that was asked.
func (y *syncer) wait(ctx context.Context, s *forcedSync, since time.Time) {
	now := y.engine.options.Now()
	s.state, s.due, s.holdUntil, s.failedBefore = syncAsked, now.Add(y.engine.options.SyncTimeout), now.Add(syncSlot), s.seen.Failed
	if s.failedBefore {
		s.holdUntil = now.Add(failingSlot)
	}
	_, s.span = y.engine.options.Tracer.Start(s.newest().ctx, "wait for sync",
		trace.WithTimestamp(since), trace.WithAttributes(workloadAttributes(workloadOfSync(s.seen))...))
	y.review(ctx, s)
}

// review looks at an ExternalSecret that was asked, after it has changed.
func (y *syncer) review(ctx context.Context, s *forcedSync) {
	if s.state != syncAsked {
		return
	}
	es := y.index.get(s.key.secret)
	if es == nil || es.UID != s.seen.UID {
		y.conclude(ctx, s, syncGone)
		return
	}
	s.seen = es
	switch {
	case s.isSynced():
		y.synced(ctx, s)
	case es.Failed && !s.failedBefore:
		y.unhold(ctx, s)
	}
}

// unhold goes on with an ExternalSecret that the operator has failed to sync, or has not got to for a while. It tries by
// itself, and the others need not wait for that.
func (y *syncer) unhold(ctx context.Context, s *forcedSync) {
	if s.seen.Failed && s.change.Verb == events.VerbDeleted {
		y.conclude(ctx, s, syncSourceDeleted)
		return
	}
	y.letGo(s)
}

// synced goes on with an ExternalSecret that was synced: it is done, or what it writes is still to change.
func (y *syncer) synced(ctx context.Context, s *forcedSync) {
	y.letGo(s)
	endSpan(s, syncDone.String())
	if s.changed || !s.rotation.NewVersion() || s.seen.Target == (events.Source{}) {
		y.conclude(ctx, s, syncDone)
		return
	}
	s.state, s.due = syncChecking, y.engine.options.Now().Add(changeWait)
}

// overdue looks at the time.
func (y *syncer) overdue(ctx context.Context, s *forcedSync) {
	now := y.engine.options.Now()
	switch late := !now.Before(s.due); {
	case s.state == syncRetrying && late:
		y.enqueue(s)
	case s.state == syncAsked && late && s.seen.Failed:
		y.conclude(ctx, s, syncRefused)
	case s.state == syncAsked && late:
		y.conclude(ctx, s, syncTimedOut)
	case s.state == syncAsked && s.holds && !now.Before(s.holdUntil):
		y.unhold(ctx, s)
	case s.state == syncChecking && late:
		if s.repeat == maxRepeats {
			y.conclude(ctx, s, syncNoChange)
			return
		}
		s.repeat++
		y.engine.log.DebugContext(s.newest().ctx, "an externalsecret was synced to what it had; it is asked again",
			"externalsecret", s.key.secret.Name, "namespace", s.key.secret.Namespace, "repeat", s.repeat)
		y.enqueue(s)
	}
}

// hold has a sync count as in progress.
func (y *syncer) hold(s *forcedSync) {
	s.holds = true
	y.inProgress++
	y.engine.metrics.syncing(s.newest().ctx, 1)
}

// letGo ends that.
func (y *syncer) letGo(s *forcedSync) {
	if s.holds {
		s.holds = false
		y.inProgress--
		y.engine.metrics.syncing(s.newest().ctx, -1)
	}
}

// conclude ends a sync: the events that it is for are one ExternalSecret nearer to being done.
func (y *syncer) conclude(ctx context.Context, s *forcedSync, reason syncReason) {
	delete(y.syncs, s.key)
	scatter(y.bySecret, s.key.secret, s)
	scatter(y.byTarget, s.seen.Target, s)
	y.letGo(s)
	endSpan(s, reason.String())
	y.say(ctx, s, reason)
	for _, t := range s.tickets {
		t.open--
		if t.open == 0 {
			y.settle(ctx, t, t.err)
		}
	}
}
