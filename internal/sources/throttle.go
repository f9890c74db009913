package sources

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// budgetHours is how many hours of its budget a namespace may have at once.
	budgetHours = 4
	// throttleNotice is how often the log says of a namespace that its changes wait.
	throttleNotice = 10 * time.Minute
)

// throttle keeps a namespace from filling the stream, and the memory of both programs: what it publishes beyond its budget waits. A source is
// compared with its last event when its turn comes: what was changed back meanwhile, or created and deleted, is never published.
type throttle struct {
	// budget is nil if namespaces are not limited.
	budget *events.Budget
	now    func() time.Time
	log    *slog.Logger
	told   *events.Notices

	mu      sync.Mutex
	waiting int
}

// newThrottle returns a throttle at so many bytes an hour, zero for no limit.
func newThrottle(bytes int, now func() time.Time, log *slog.Logger) *throttle {
	t := &throttle{now: now, log: log, told: events.NewNotices(throttleNotice)}
	if bytes > 0 {
		t.budget = events.NewBudget(int64(bytes), time.Hour, budgetHours*int64(bytes))
	}
	return t
}

// reservation is the turn of a source that has something to say. The zero value is none.
type reservation struct {
	turn time.Time
	size int
	// waits reports that the turn did not come at once. The source is counted as waiting then.
	waits bool
}

// wait returns for how long a change must wait for its turn. Each call weighs the change again, which may have grown, while the namespace may
// owe less. The earlier turn is kept, so that nobody waits for those who came later. Only a source that is bigger than ever before goes to the end;
// since it keeps the most that it has weighed, it cannot do so for ever.
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
		t.count(1)
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
		t.count(-1)
	}
	*held = reservation{}
}

// dropped is called when the source of a reservation has nothing to say any more.
func (t *throttle) dropped(namespace string, held *reservation) {
	if held.size > 0 {
		t.budget.Return(namespace, held.size)
	}
	t.published(held)
}

func (t *throttle) count(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting += n
}

// length returns how many sources wait for their turn.
func (t *throttle) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// What an event takes on the stream, beside names and fingerprints.
const (
	eventWeight = 800
	keyWeight   = 48
)

// weight returns about how many bytes an event takes on the stream.
func weight(change events.Change) int {
	size := eventWeight + 4*len(change.Source.Name)
	for name, key := range change.Keys {
		size += keyWeight + len(name) + len(key.Fingerprint) + len(key.ChangedAt)
	}
	for _, name := range change.Changed {
		size += 3 + len(name)
	}
	return size
}
