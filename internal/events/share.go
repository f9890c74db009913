package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// historyShare limits how much of StreamHistory a namespace, or a mount of a secret store, may use while the stream is more than half full. A full
// stream drops its oldest events, no matter whose they are: a namespace that exceeds its share must not displace the events of others.
// See docs/adr/0025-a-namespace-has-a-budget.md.
type historyShare struct {
	// kept lists for how long events may be kept, with the longest time first. An event gets the first for which its namespace has room. If
	// empty, the stream is not limited.
	kept []keeping
	// half is the size of the stream, in bytes, above which shares are enforced.
	half uint64
	// look returns the current state of the stream.
	look func(context.Context) (*jetstream.StreamInfo, error)
	now  func() time.Time
	log  *slog.Logger

	told *Notices
	// beyond counts the events beyond shares. It is replaced before anything is published.
	beyond metric.Int64Counter

	mu sync.Mutex
	// looked is when the stream was last looked at. stored is the number of bytes that it held then, plus what this program has stored since.
	looked time.Time
	stored uint64
}

// keeping is how long events that fit into a budget are kept.
type keeping struct {
	budget *Budget
	// ttl is zero for events that are kept as long as the stream keeps any.
	ttl time.Duration
}

const (
	// shares is the number of shares into which half of the stream is divided. Both programs publish there, so a namespace has two shares.
	shares = 16
	// shortly is how long an event is kept if its namespace has no room for it.
	shortly = time.Hour
	// shareLook is how often the stream is looked at.
	shareLook = time.Minute
)

// newHistoryShare returns the historyShare of a stream with this configuration.
func newHistoryShare(
	config jetstream.StreamConfig, look func(context.Context) (*jetstream.StreamInfo, error), now func() time.Time, log *slog.Logger,
) *historyShare {
	h := &historyShare{look: look, now: now, log: log, told: NewNotices(shortly), beyond: noop.Int64Counter{}}
	if config.MaxBytes <= 0 {
		return h
	}
	age := config.MaxAge
	if age == 0 {
		age = retention
	}
	h.half = uint64(config.MaxBytes / 2)
	share := config.MaxBytes / 2 / shares
	for _, ttl := range []time.Duration{0, shortly} {
		per := ttl
		if ttl == 0 {
			per = age
		}
		h.kept = append(h.kept, keeping{budget: NewBudget(share, per, share/8), ttl: ttl})
	}
	return h
}

// room is the room that an event takes up in the stream. The zero value is no room.
type room struct {
	// ttl is how long the stream keeps the event. Zero means as long as any other.
	ttl    time.Duration
	sharer string
	size   int
	share  *historyShare
	// budget is the budget that the size was taken from. It is nil if none had room, or none was needed.
	budget *Budget
}

// giveBack is called if the event was not stored. Publishing it again takes the room again.
func (r room) giveBack() {
	if r.budget != nil {
		r.budget.Return(r.sharer, r.size)
	}
	if r.share != nil {
		r.share.mu.Lock()
		defer r.share.mu.Unlock()
		r.share.stored -= min(r.share.stored, uint64(r.size)) // The stream may have been looked at since.
	}
}

// take returns the room for an event of a namespace or mount, and false if the event must not be stored. Events of neither are not limited.
func (h *historyShare) take(ctx context.Context, sharer string, size int) (room, bool) {
	if len(h.kept) == 0 {
		return room{}, true
	}
	crowded := h.crowded(ctx, size)
	taken := room{sharer: sharer, size: size, share: h}
	if sharer == "" {
		return taken, true
	}
	now := h.now()
	var ttl time.Duration
	var ok bool
	for _, k := range h.kept {
		if k.budget.Take(sharer, size, now) {
			taken.budget, ttl, ok = k.budget, k.ttl, true
			break
		}
	}
	if ok && ttl == 0 || !crowded {
		return taken, true
	}
	if h.told.Due(sharer, now) {
		h.log.WarnContext(ctx, "a namespace or mount publishes more than its share of the history, which is kept for a short time or not at all",
			"of", sharer, "kept", ttl)
	}
	kept := "hour"
	if !ok {
		kept = "none"
		taken.giveBack()
		taken = room{}
	}
	h.beyond.Add(ctx, 1, metric.WithAttributes(attribute.String("kept", kept)))
	taken.ttl = ttl
	return taken, ok
}

// crowded reports whether the stream is more than half full, including an event of the given size that is about to be stored.
func (h *historyShare) crowded(ctx context.Context, size int) bool {
	var seen *jetstream.StreamInfo
	if h.isDue() {
		// Concurrent calls do not wait for the answer but use the previous one. Without an answer, this call uses it, too.
		seen, _ = h.look(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen != nil {
		h.stored = seen.State.Bytes
	}
	h.stored += uint64(size)
	return h.stored > h.half
}

// isDue reports whether it is time to look at the stream. If so, the caller must do that.
func (h *historyShare) isDue() bool {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.looked) < shareLook {
		return false
	}
	h.looked = now
	return true
}

// forSoLong returns the option that makes the stream keep an event for ttl, or no option if ttl is zero.
func forSoLong(ttl time.Duration) []jetstream.PublishOpt {
	if ttl == 0 {
		return nil
	}
	return []jetstream.PublishOpt{jetstream.WithMsgTTL(ttl)}
}

// lookAtHistory returns the state and configuration of StreamHistory.
func (b *Bus) lookAtHistory(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := b.history.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", StreamHistory, err)
	}
	return info, nil
}
