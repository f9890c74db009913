package bus

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// historyShare limits how much of StreamHistory a namespace, or a mount of a secret store, may use while the stream is more than half full, so that
// none displaces the events of others. JetStream limits streams and subjects, and a namespace is in the middle of many subjects, with ever new names.
// Purging the events of the largest namespace would take the right to delete events, and a stream for each namespace would make permissions come and
// go. So the publishers enforce the shares, in memory: a restart renews the share of every namespace. CHANGES has every state regardless.
type historyShare struct {
	stream jetstream.Stream
	now    func() time.Time
	log    *slog.Logger
	// month is the budget of events that are kept as long as others, and hour that of events that are kept for an hour. Nil means no limit.
	month, hour *events.Budget
	half        uint64 // the size of the stream, in bytes, above which shares are enforced

	told *events.Notices
	// beyond counts the events beyond shares. It is replaced before anything is published.
	beyond metric.Int64Counter

	mu     sync.Mutex
	stored uint64 // the size of the stream at the last look, plus the bytes that this program has stored since
}

const (
	// shares is the number of shares of half the stream. Both programs publish there, so a namespace has two shares.
	shares    = 16
	shortly   = time.Hour   // how long an event is kept if its namespace has no room for it
	shareLook = time.Minute // how often the stream is looked at
)

func newHistoryShare(stream jetstream.Stream, now func() time.Time, log *slog.Logger) *historyShare {
	h := &historyShare{stream: stream, now: now, log: log, told: events.NewNotices(shortly), beyond: noop.Int64Counter{}}
	seen := stream.CachedInfo()
	config := seen.Config
	if config.MaxBytes <= 0 {
		return h
	}
	h.stored = seen.State.Bytes
	h.half = uint64(config.MaxBytes / 2)
	share := config.MaxBytes / 2 / shares
	h.month = events.NewBudget(share, cmp.Or(config.MaxAge, retention), share/8)
	h.hour = events.NewBudget(share, shortly, share/8)
	return h
}

// room is the room of an event in the stream. The zero value is no room.
type room struct {
	ttl    time.Duration // how long the stream keeps the event; zero means as long as others
	sharer string
	size   int
	budget *events.Budget // the budget that the size was taken from; nil if none had room, or none was needed
}

// take returns the room for an event of a namespace or mount, and false if the event must not be stored. Other events are not limited.
func (h *historyShare) take(ctx context.Context, sharer string, size int) (room, bool) {
	if h.month == nil {
		return room{}, true
	}
	isCrowded, now := h.isCrowded(size), h.now()
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
		h.log.WarnContext(ctx, "namespace or mount exceeds its share of the history; its further events are kept for an hour or not at all",
			"of", sharer, "kept", taken.ttl)
	}
	h.beyond.Add(ctx, 1, metric.WithAttributes(attribute.String("kept", kept)))
	if taken.budget == nil {
		h.giveBack(taken)
		return room{}, false
	}
	return taken, true
}

// giveBack is called if the event was not stored. A new attempt takes room again.
func (h *historyShare) giveBack(taken room) {
	if taken.budget != nil {
		taken.budget.Return(taken.sharer, taken.size)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored -= min(h.stored, uint64(taken.size)) // The stream may have been looked at since.
}

// isCrowded reports whether the stream is more than half full, including an event of the given size that is about to be stored.
func (h *historyShare) isCrowded(size int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored += uint64(size)
	return h.stored > h.half
}

// WatchHistory looks at the size of StreamHistory once a minute until ctx is done, and stores there what it lacks. No publication waits for it: a
// busy hub may take seconds to respond. In between, the bytes that this program stores are added.
func (b *Bus) WatchHistory(ctx context.Context) {
	for kube.Sleep(ctx, shareLook) {
		if b.share.month != nil {
			b.share.look(ctx)
		}
		b.settleAll(ctx)
	}
}

// look asks the stream for its size. Without a response, the previous size counts.
func (h *historyShare) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	seen, err := h.stream.Info(bounded)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = seen.State.Bytes
}
