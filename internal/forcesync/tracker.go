package forcesync

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// tracker moves pending syncs between their states. A sync is in the registry until it is finished. Until then, it is in at most one of
// turns, last and agenda.
type tracker struct {
	pending registry
	turns   turns
	// last has the syncs of ExternalSecrets that were never synced. They come after all others: what they name may not be theirs to read.
	last     turns
	agenda   agenda
	slots    slots
	reporter reporter
}

// open adds a sync and queues it.
func (t *tracker) open(ctx context.Context, s *pendingSync) {
	t.pending.add(s)
	t.enqueue(ctx, s)
}

// enqueue makes a sync wait for its turn, whatever it waited for before.
func (t *tracker) enqueue(ctx context.Context, s *pendingSync) {
	t.slots.release(ctx, s)
	t.agenda.remove(s)
	s.endWait("superseded")
	s.state, s.stale = queued, false
	if s.seen.SyncedVersion == "" {
		t.last.push(s)
	} else {
		t.turns.push(s)
	}
}

// next removes and returns the next sync that may be patched, or nil if none may be.
func (t *tracker) next() *pendingSync {
	if s := t.turns.pop(t.slots.free); s != nil {
		return s
	}
	return t.last.pop(t.slots.free)
}

// popOwned removes and returns the queued syncs of a source whose ExternalSecrets were created by the given ClusterExternalSecret.
func (t *tracker) popOwned(source events.Source, owner string) []*pendingSync {
	return append(t.turns.popOwned(source, owner), t.last.popOwned(source, owner)...)
}

// wait puts a sync into a state that ends at the given time, unless something else ends it before.
func (t *tracker) wait(s *pendingSync, in state, until time.Time) {
	s.state = in
	t.agenda.schedule(s, until)
}

// finish ends a sync, reports why, and releases its events. If err is not nil, it is why it was given up. finish does nothing for a
// sync that is already finished: another sync may have its key by then.
func (t *tracker) finish(ctx context.Context, s *pendingSync, why reason, err error) {
	if t.pending.byKey[s.key] != s {
		return
	}
	t.pending.remove(s)
	t.agenda.remove(s)
	t.slots.release(ctx, s)
	s.endWait(why.String())
	t.reporter.report(ctx, s, why)
	release(ctx, s.causes, err)
}
