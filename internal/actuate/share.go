package actuate

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// shareInFlight is how many changes the workloads of a namespace may wait with. Beyond it each waits with one.
	shareInFlight = 5000
	// maxWaiting is how many changes all workloads may wait with before the share of each namespace is smaller, by the factor crowding.
	maxWaiting = 4 * shareInFlight
	crowding   = 10
	// postponedFor is how long what is known of a postponed event is kept. The stream has had it delivered again by then, unless it has dropped it.
	postponedFor = 24 * time.Hour
	// shareNotice is how often the log says of a namespace that its events are postponed.
	shareNotice = 10 * time.Minute
)

// share bounds what the workloads of one namespace keep in flight. What they wait with beyond it stays on the stream alone, which delivers it again
// later. See docs/adr/0029-a-namespace-has-a-share-of-the-events-in-flight.md.
type share struct {
	// limit is shareInFlight, and most maxWaiting, except in tests.
	limit, most int
	now         func() time.Time
	log         *slog.Logger
	told        *events.Notices

	// waiting counts the pending changes of workloads by their namespace, those that are being patched for included, and total all of them.
	waiting map[string]int
	total   int
	// postponed are the sources with an event that was postponed, and not delivered again since.
	postponed map[events.Source]postponed
}

// postponed is an event that was postponed at a time.
type postponed struct {
	seq uint64
	at  time.Time
}

func newShare(now func() time.Time, log *slog.Logger) *share {
	return &share{
		limit: shareInFlight, most: maxWaiting, now: now, log: log, told: events.NewNotices(shareNotice),
		waiting: make(map[string]int), postponed: make(map[events.Source]postponed),
	}
}

// add counts a change that a workload of the namespace waits with.
func (s *share) add(namespace string) {
	s.waiting[namespace]++
	s.total++
}

// remove counts one that it no longer waits with.
func (s *share) remove(namespace string) {
	if s.waiting[namespace] == 0 {
		return
	}
	s.total--
	if s.waiting[namespace]--; s.waiting[namespace] == 0 {
		delete(s.waiting, namespace)
	}
}

// isUsedUp reports whether the workloads of a namespace wait with as much as they may. While all wait with very much, those of a namespace that has
// little have no less of it.
func (s *share) isUsedUp(namespace string) bool {
	limit := s.limit
	if s.total >= s.most {
		limit /= crowding
	}
	return s.waiting[namespace] >= limit
}

// postpone takes note of an event that a workload of the namespace is not going to wait with.
func (s *share) postpone(ctx context.Context, namespace string, delivery *events.Delivery) {
	now := s.now()
	s.postponed[delivery.Change.Source] = postponed{seq: delivery.Seq, at: now}
	if s.told.Due(namespace, now) {
		s.log.WarnContext(ctx, "the workloads of a namespace wait with more changes than its share; further ones are postponed",
			"namespace", namespace, "changes", s.waiting[namespace], "source", delivery.Change.Source.String())
	}
}

// delivered takes note of an event of a source. If it is not the one that was postponed, it has taken its place on the stream.
func (s *share) delivered(source events.Source) { delete(s.postponed, source) }

// has reports whether an event of the source is postponed, so that it is not decided for every workload.
func (s *share) has(source events.Source) bool {
	_, ok := s.postponed[source]
	return ok
}

// prune forgets events that the stream has dropped.
func (s *share) prune() {
	maps.DeleteFunc(s.postponed, func(_ events.Source, p postponed) bool { return s.now().Sub(p.at) > postponedFor })
}

// postponement returns for how long an event is postponed after so many deliveries: 5 minutes, doubled up to 1 hour, with a fifth of jitter. Each is
// delivered, matched and given back again, and there may be very many.
func postponement(deliveries int) time.Duration {
	backoff := wait.Backoff{Duration: 5 * time.Minute, Factor: 2, Jitter: 0.2, Steps: 5, Cap: time.Hour}
	for range min(deliveries, backoff.Steps) - 1 {
		backoff.Step()
	}
	return backoff.Step()
}
