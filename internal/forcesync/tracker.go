package forcesync

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fair"
)

// tracker moves pending syncs between their states. A sync is in the registry until it is finished. Until then, it is in at most one of
// turns, last and agenda.
type tracker struct {
	pending registry
	// turns queues the syncs that are to be patched. Sources take turns, so that a source that many ExternalSecrets read does not delay the others. So
	// do the namespaces of each source, because anyone may create ExternalSecrets that read it.
	turns *fair.Turns[*pendingSync]
	// last has the syncs of ExternalSecrets that were never synced. They come after all others: what they name may not be theirs to read.
	last   *fair.Turns[*pendingSync]
	agenda agenda
	// slots are those of ExternalSecrets that are patched but not synced yet. active is called with each change of their number.
	slots    *fair.Slots
	active   func(ctx context.Context, change int64)
	reporter reporter
}

func newTracker(host *Host) *tracker {
	path := func(s *pendingSync) []string { return []string{s.key.source.String(), s.key.secret.Namespace} }
	return &tracker{
		pending: newRegistry(), turns: fair.NewTurns(path), last: fair.NewTurns(path),
		slots: fair.NewSlots(host.MaxSyncs, host.Alone), active: host.Metrics.Active, reporter: newReporter(host),
	}
}

// open adds a sync and queues it.
func (t *tracker) open(ctx context.Context, s *pendingSync) {
	t.pending.add(s)
	t.enqueue(ctx, s)
}

// enqueue makes a sync wait for its turn, whatever it waited for before.
func (t *tracker) enqueue(ctx context.Context, s *pendingSync) {
	t.returnSlot(ctx, s)
	t.agenda.remove(s)
	s.endWait("superseded")
	s.state, s.stale = queued, false
	if s.seen.SyncedVersion == "" {
		t.last.Push(s)
	} else {
		t.turns.Push(s)
	}
}

// next removes and returns the next sync that may be patched, or nil if none may be.
func (t *tracker) next() *pendingSync {
	if t.slots.Free() <= 0 {
		return nil // Many may wait when this is called with each event.
	}
	if s := t.turns.Pop(t.slots.MayTake); s != nil {
		return s
	}
	return t.last.Pop(t.slots.MayTake)
}

// popOwned removes and returns the queued syncs of a source whose ExternalSecrets were created by the given ClusterExternalSecret.
func (t *tracker) popOwned(source events.Source, owner string) []*pendingSync {
	var owned []*pendingSync
	for _, s := range t.pending.byKey {
		if s.key.source == source && s.seen.Owner == owner && (t.turns.Has(s) || t.last.Has(s)) {
			t.turns.Remove(s)
			t.last.Remove(s)
			owned = append(owned, s)
		}
	}
	return owned
}

// takeSlot counts a sync against Host.MaxSyncs. The ExternalSecrets of one ClusterExternalSecret are patched together, and may exceed that.
func (t *tracker) takeSlot(ctx context.Context, s *pendingSync) {
	s.hasSlot = true
	t.slots.Take(s.key.secret.Namespace)
	t.active(s.newest().context(ctx), 1)
}

// returnSlot returns the slot of a sync, if it has one.
func (t *tracker) returnSlot(ctx context.Context, s *pendingSync) {
	if s.hasSlot {
		s.hasSlot = false
		t.slots.Return(s.key.secret.Namespace)
		t.active(s.newest().context(ctx), -1)
	}
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
	t.returnSlot(ctx, s)
	s.endWait(why.String())
	t.reporter.report(ctx, s, why)
	release(ctx, s.causes, err)
}
