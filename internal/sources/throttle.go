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
	throttleNotice = 10 * time.Minute // how often it is logged that the changes of a namespace wait
)

// throttle keeps a namespace from filling the stream and the memory of both programs: changes beyond its budget wait. A source is compared with its
// last event when its turn comes, so a change that was undone meanwhile, or an object that was created and deleted, is never published. Not counted
// is what an object causes once at most: its first event, and what is found at the start. How many objects there are, quotas limit.
type throttle struct {
	budget  *events.Budget // nil if namespaces are not limited
	now     func() time.Time
	log     *slog.Logger
	told    *events.Notices
	waiting atomic.Int64 // sources
}

// newThrottle returns a throttle that allows each namespace the given number of bytes per hour. Zero means no limit.
func newThrottle(bytes int, now func() time.Time, log *slog.Logger) *throttle {
	t := &throttle{now: now, log: log, told: events.NewNotices(throttleNotice)}
	if bytes > 0 {
		t.budget = events.NewBudget(int64(bytes), time.Hour, budgetHours*int64(bytes))
	}
	return t
}

// reservation is the turn of a source that has an event to publish. The zero value means no reservation.
type reservation struct {
	turn  time.Time
	size  int
	waits bool // the turn did not come at once, so that the source is counted as waiting
}

// wait returns for how long a change must wait for its turn. Each call weighs the change again, because the change may have grown and the namespace
// may owe less. The earlier of the two turns is kept, so that no source waits for later ones. Only a source whose weight exceeds all earlier ones
// goes to the end. The reservation keeps the largest weight, so this cannot repeat forever.
func (t *throttle) wait(ctx context.Context, change events.Change, held *reservation) time.Duration {
	if t.budget == nil {
		return 0
	}
	now, namespace := t.now(), change.Source.Namespace
	size := max(held.size, weight(change))
	turn := t.budget.Reserve(namespace, size-held.size, now) // the turn of all that is reserved
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

// dropped is called when the source of a reservation no longer has an event to publish.
func (t *throttle) dropped(namespace string, held *reservation) {
	if held.size > 0 {
		t.budget.Return(namespace, held.size)
	}
	t.published(held)
}

// length returns how many sources wait for their turn.
func (t *throttle) length() int { return int(t.waiting.Load()) }

// The size of an event on the stream, apart from names and fingerprints.
const (
	eventWeight = 800
	keyWeight   = 48
)

// weight estimates how many bytes an event takes on the stream.
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
