package bus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/internal/events"
)

// historyShare limits how much of StreamHistory a namespace, or a mount of a secret store, may use while it is more than half full, so that none
// displaces the events of others. See docs/adr/0025-a-namespace-has-a-budget.md.
type historyShare struct {
	stream jetstream.Stream
	now    func() time.Time
	log    *slog.Logger
	// month is the budget of events that are kept as long as any, and hour that of events that are kept for an hour. Nil means no limit.
	month, hour *events.Budget
	half        uint64 // the size of the stream, in bytes, above which shares are enforced

	told *events.Notices
	// beyond counts the events beyond shares. It is replaced before anything is published.
	beyond metric.Int64Counter

	mu     sync.Mutex
	looked time.Time // when the stream was last looked at
	stored uint64    // the bytes that it held then, and what this program has stored since
}

const (
	// shares is the number of shares into which half of the stream is divided. Both programs publish there, so a namespace has two shares.
	shares    = 16
	shortly   = time.Hour   // how long an event is kept if its namespace has no room for it
	shareLook = time.Minute // how often the stream is looked at
)

func newHistoryShare(stream jetstream.Stream, now func() time.Time, log *slog.Logger) *historyShare {
	h := &historyShare{stream: stream, now: now, log: log, told: events.NewNotices(shortly), beyond: noop.Int64Counter{}}
	config := stream.CachedInfo().Config
	if config.MaxBytes <= 0 {
		return h
	}
	age := config.MaxAge
	if age == 0 {
		age = retention
	}
	h.half = uint64(config.MaxBytes / 2)
	share := config.MaxBytes / 2 / shares
	h.month, h.hour = events.NewBudget(share, age, share/8), events.NewBudget(share, shortly, share/8)
	return h
}

// room is the room that an event takes up in the stream. The zero value is no room.
type room struct {
	ttl    time.Duration // how long the stream keeps the event; zero means as long as any other
	sharer string
	size   int
	budget *events.Budget // the budget that the size was taken from; nil if none had room, or none was needed
}

// take returns the room for an event of a namespace or mount, and false if the event must not be stored. Events of neither are not limited.
func (h *historyShare) take(ctx context.Context, sharer string, size int) (room, bool) {
	if h.month == nil {
		return room{}, true
	}
	isCrowded, now := h.isCrowded(ctx, size), h.now()
	taken := room{sharer: sharer, size: size}
	switch {
	case sharer == "":
		return taken, true
	case h.month.Take(sharer, size, now):
		taken.budget = h.month
		return taken, true
	case h.hour.Take(sharer, size, now):
		taken.budget = h.hour
	}
	if !isCrowded {
		return taken, true
	}
	kept := "none"
	if taken.budget != nil {
		taken.ttl, kept = shortly, "hour"
	}
	if h.told.Due(sharer, now) {
		h.log.WarnContext(ctx, "a namespace or mount publishes more than its share of the history, which is kept for a short time or not at all",
			"of", sharer, "kept", taken.ttl)
	}
	h.beyond.Add(ctx, 1, metric.WithAttributes(attribute.String("kept", kept)))
	if taken.budget == nil {
		h.giveBack(taken)
		return room{}, false
	}
	return taken, true
}

// giveBack is called if the event was not stored. Publishing it again takes the room again.
func (h *historyShare) giveBack(taken room) {
	if taken.budget != nil {
		taken.budget.Return(taken.sharer, taken.size)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored -= min(h.stored, uint64(taken.size)) // The stream may have been looked at since.
}

// isCrowded reports whether the stream is more than half full, including an event of the given size that is about to be stored.
func (h *historyShare) isCrowded(ctx context.Context, size int) bool {
	var seen *jetstream.StreamInfo
	now := h.now()
	h.mu.Lock()
	isDue := now.Sub(h.looked) >= shareLook
	if isDue {
		h.looked = now
	}
	h.mu.Unlock()
	if isDue {
		bounded, cancel := context.WithTimeout(ctx, infoTimeout)
		defer cancel()
		// Concurrent calls do not wait for the answer but use the previous one. Without an answer, this call uses it, too.
		seen, _ = h.stream.Info(bounded)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen != nil {
		h.stored = seen.State.Bytes
	}
	h.stored += uint64(size)
	return h.stored > h.half
}
