package sources

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	budgetHours    = 4                // how many hours of its budget a namespace may use at once
	throttleNotice = 10 * time.Minute // how often a log line reports the waiting changes of a namespace
)

// throttle keeps a namespace from filling the stream and the memory of both programs: changes beyond its budget wait. A source is compared with its
// last event when its turn comes, so a change that was undone meanwhile, or an object that was created and deleted, is never published. Events that
// each object causes only once do not count: its first event, and changes that are found at the start. Quotas limit the number of objects.
type throttle struct {
	budget  *events.Budget // nil if namespaces are not limited
	now     func() time.Time
	log     *slog.Logger
	told    *events.Notices
	waiting atomic.Int64 // the number of waiting sources
}

// newThrottle returns a throttle that allows each namespace the given number of bytes per hour. Zero means no limit.
func newThrottle(bytes int, now func() time.Time, log *slog.Logger) *throttle {
	t := &throttle{now: now, log: log, told: events.NewNotices(throttleNotice)}
	if bytes > 0 {
		t.budget = events.NewBudget(int64(bytes), time.Hour, budgetHours*int64(bytes))
	}
	return t
}

// reservation is the turn of a source with an event to publish. The zero value means no reservation.
type reservation struct {
	turn  time.Time
	size  int
	waits bool // the source must wait for its turn and counts as waiting
}

// wait returns how long a change must wait for its turn. Each call weighs the change again, because the change may have grown and the namespace may
// owe less. The earlier turn is kept, so that no source waits for later ones. Only a source whose weight exceeds all earlier ones goes to the end.
// The reservation keeps the largest weight, so this cannot repeat forever.
func (t *throttle) wait(ctx context.Context, change events.Change, held *reservation) time.Duration {
	if t.budget == nil {
		return 0
	}
	now, namespace := t.now(), change.Source.Namespace
	size := max(held.size, weight(change))
	turn := t.budget.Reserve(namespace, size-held.size, now) // the turn of the whole reservation
	if size > held.size || turn.Before(held.turn) {
		held.turn = turn
	}
	held.size = size
	if !held.turn.After(now) {
		return 0
	}
	after := held.turn.Sub(now)
	if !held.waits {
		held.waits = true
		t.waiting.Add(1)
		if t.told.Due(namespace, now) {
			t.log.WarnContext(ctx, "a namespace changes more than its budget; its changes wait", "namespace", namespace,
				"source", change.Source.String(), "wait", after)
		}
	}
	return after
}

// published is called when the change of a reservation is on the stream.
func (t *throttle) published(held *reservation) {
	if held.waits {
		t.waiting.Add(-1)
	}
	*held = reservation{}
}

// dropped is called when the source of a reservation has no event to publish any more.
func (t *throttle) dropped(namespace string, held *reservation) {
	if held.size > 0 {
		t.budget.Return(namespace, held.size)
	}
	t.published(held)
}

// length returns the number of sources that wait for their turn.
func (t *throttle) length() int { return int(t.waiting.Load()) }

// These are the parts of the size of an event on the stream, without names and fingerprints.
const (
	eventWeight = 800
	keyWeight   = 48
)

// weight estimates the size of an event on the stream in bytes.
func weight(change events.Change) int {
	size := eventWeight + 4*len(change.Source.Name)
	for _, keys := range []map[string]events.Key{change.Keys, change.Buckets} {
		for name, key := range keys {
			size += keyWeight + len(name) + len(key.Fingerprint) + len(key.ChangedAt)
		}
	}
	for _, name := range change.Changed {
		size += 3 + len(name)
	}
	return size
}
