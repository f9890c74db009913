package forcesync

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/workload"
)

// Syncer syncs the ExternalSecrets that read a secret in a store when that changes. Its methods must be called from one goroutine. Create one
// with New each time the actuator becomes the leader.
type Syncer struct {
	dryRun   bool
	now      func() time.Time
	index    *Index
	inbox    *inbox
	problems problems
	// addresses reports ExternalSecrets that may be meant to be synced.
	addresses addresses

	tracker  *tracker
	follower *follower
	patcher  *patcher
	starter  *starter
}

// New returns a Syncer. No other Syncer may use the Index until this one is stopped. Changes are not collected while no Syncer uses the Index:
// a Syncer begins by looking at everything in it.
func New(host Host, index *Index) *Syncer {
	y := &Syncer{
		dryRun: host.DryRun, now: host.Now, index: index, inbox: index.inbox, problems: newProblems(host.Log),
		addresses: newAddresses(index, host.Log), tracker: newTracker(&host),
		patcher: &patcher{client: host.Client, tracer: host.Tracer, now: host.Now, index: index, inbox: index.inbox},
	}
	y.follower = &follower{tracker: y.tracker, index: index, log: host.Log, tracer: host.Tracer, now: host.Now}
	y.starter = &starter{
		tracker: y.tracker, follower: y.follower, patcher: y.patcher, index: index, log: host.Log, now: host.Now, failed: host.Metrics.PatchFailed,
	}
	index.attend()
	return y
}

// Take handles an event about a secret in a store, or about an object that ExternalSecrets write. It holds the event once for each sync
// that the event asks for. span is the span of the event's processing.
func (y *Syncer) Take(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	if change.Verb == events.VerbChanged {
		y.follower.targetChanged(ctx, change.Source)
	}
	rotation, ok := externalsecret.RotationOf(change)
	if !ok {
		return
	}
	y.addresses.review(ctx, change, rotation)
	for _, es := range y.index.dependents(rotation) {
		y.consider(ctx, newPending(es, change, rotation, cause{event, span}))
	}
}

// Resume is Take for the last event about a secret in a store when the Syncer begins. It asks only for the syncs that nobody has finished, as far as
// the ExternalSecrets show.
func (y *Syncer) Resume(ctx context.Context, change events.Change, span trace.Span, event HeldEvent) {
	rotation, ok := externalsecret.RotationOf(change)
	if !ok {
		return
	}
	for _, es := range y.index.dependents(rotation) {
		if y.lacks(es, change) {
			y.consider(ctx, newPending(es, change, rotation, cause{event, span}))
		}
	}
}

// lacks reports whether an ExternalSecret has still to be synced for a change. The operator tries one that it has not synced again anyway. A sync
// that was asked for longer ago than it may take has ended, and that was reported.
func (y *Syncer) lacks(es *externalsecret.ExternalSecret, change events.Change) bool {
	if _, refused := refusal(es, y.dryRun); refused || es.Untried() || es.Failed {
		return false
	}
	_, asked := targetOf(es, y.index.owner(es)).asked(change.ID())
	isSynced := es.Ready && !es.RefreshTime.Before(change.Time.Truncate(time.Second))
	return !isSynced && (!asked || y.now().Sub(change.Time) < syncTimeout)
}

// consider opens a sync, unless one is pending for the same source or the ExternalSecret cannot be synced.
func (y *Syncer) consider(ctx context.Context, s *pendingSync) {
	if earlier := y.tracker.pending.byKey[s.key]; earlier != nil {
		s.newest().event.Hold()
		y.join(ctx, earlier, s)
		return
	}
	if why, ok := refusal(s.seen, y.dryRun); ok {
		y.tracker.reporter.report(ctx, s, why)
		return
	}
	s.newest().event.Hold()
	y.tracker.open(ctx, s)
}

// join adds the event of later to a pending sync and releases the events that are no longer needed. If the change of later is newer, the sync
// starts over for that change, and nothing more is patched for the older one.
func (y *Syncer) join(ctx context.Context, s, later *pendingSync) {
	s.joined = true
	newest := s.newest()
	switch {
	case later.change.ID() == s.change.ID():
		newest.event.Release(ctx, nil)
		s.causes[len(s.causes)-1] = later.newest()
		return
	case !workload.Newer(later.change.ResourceVersion, s.change.ResourceVersion):
		release(ctx, s.causes[:len(s.causes)-1], nil)
		s.causes = []cause{later.newest(), newest}
		return
	}
	s.superseded = s.superseded || s.state == patching || !s.sent.IsZero()
	release(ctx, s.causes, nil)
	s.causes = later.causes
	s.change, s.rotation = later.change, later.rotation
	s.repeat, s.denials, s.changed, s.unclear, s.visible = 0, 0, false, false, time.Time{}
	switch s.state {
	case queued, retrying: // it is patched for the newer change at its turn or after the delay
	case patching:
		s.stale = true // the answer to the patch decides what comes next
	case syncing, checking, untried:
		y.tracker.enqueue(ctx, s)
	}
}

// Signal returns a channel that is readable when Collect has something to do.
func (y *Syncer) Signal() <-chan struct{} { return y.inbox.signal }

// Collect handles the answers to patches and the changes of ExternalSecrets.
func (y *Syncer) Collect(ctx context.Context) {
	changed, answers := y.inbox.take()
	for _, a := range answers {
		y.starter.answered(ctx, a)
	}
	for name := range changed {
		y.problems.review(ctx, name, y.index.get(name))
		for _, s := range y.tracker.pending.bySecret[name] {
			y.follower.review(ctx, s)
		}
	}
}

// Next returns when to call Advance next if nothing else happens before. ok is false if there is no such time.
func (y *Syncer) Next() (at time.Time, ok bool) { return y.tracker.agenda.next() }

// Advance handles what is due, and patches while slots are free.
func (y *Syncer) Advance(ctx context.Context) {
	for s := y.tracker.agenda.pop(y.now()); s != nil; s = y.tracker.agenda.pop(y.now()) {
		y.follower.expire(ctx, s)
	}
	for s := y.tracker.next(); s != nil; s = y.tracker.next() {
		y.starter.start(ctx, s)
	}
}

// Stop waits for the patches that are being sent, and returns all slots. The events stay held.
func (y *Syncer) Stop(ctx context.Context) {
	y.patcher.stop()
	for _, s := range y.tracker.pending.byKey {
		y.tracker.returnSlot(ctx, s)
		s.endWait("interrupted")
	}
}
