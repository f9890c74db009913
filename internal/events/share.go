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

// historyShare is the part of StreamHistory that a namespace, or a mount of a secret store, may take when the stream is more than half full. The
// stream drops its oldest events when it is full, whosever they are: what one of them publishes beyond its share must not cost others theirs.
// See docs/adr/0025-a-namespace-has-a-budget.md.
type historyShare struct {
	// kept are how long events are kept, the longest first. An event takes the first for which its namespace has room. None: the stream is not
	// limited.
	kept []keeping
	// half is the size from which shares count.
	half uint64
	// look returns what the stream holds and how it is configured at present.
	look func(context.Context) (*jetstream.StreamInfo, error)
	now  func() time.Time
	log  *slog.Logger

	told *Notices
	// beyond counts what goes beyond shares. It is replaced before anything is published.
	beyond metric.Int64Counter

	mu sync.Mutex
	// looked is when the stream was looked at, and stored is what it held, with what this program has stored since.
	looked time.Time
	stored uint64
	// hasTTL reports whether an event may have a time of its own. One that was declared by an earlier version does not have that.
	hasTTL bool
}

// keeping is how long events are kept that fit into a budget.
type keeping struct {
	budget *Budget
	// ttl is zero for as long as the stream keeps events.
	ttl time.Duration
}

const (
	// shares is how many shares the half of the stream has that namespaces share. Both programs publish there, so a namespace has two.
	shares = 16
	// shortly is how long events are kept for which a namespace has no room.
	shortly = time.Hour
	// shareLook is how often the stream is looked at.
	shareLook = time.Minute
)

// newHistoryShare returns the share of a stream with this configuration.
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

// room is what an event takes of the stream. The zero value is that of one that takes nothing.
type room struct {
	// ttl is for how long the stream keeps the event, zero for as long as any other.
	ttl    time.Duration
	sharer string
	size   int
	share  *historyShare
	// budget is the one that the event was taken from. Nil: none had room, or none was needed.
	budget *Budget
}

// giveBack is called if the event was not stored. It will take room again when it is published again.
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

// take returns the room for an event of a namespace or mount, and false if it must not be stored. Whatever is of neither is not limited.
func (h *historyShare) take(ctx context.Context, sharer string, size int) (room, bool) {
	if len(h.kept) == 0 {
		return room{}, true
	}
	crowded, hasTTL := h.crowded(ctx, size)
	taken := room{sharer: sharer, size: size, share: h}
	if sharer == "" {
		return taken, true
	}
	now := h.now()
	var ttl time.Duration
	var ok bool
	for _, k := range h.kept {
		if (k.ttl == 0 || hasTTL) && k.budget.Take(sharer, size, now) {
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

// crowded reports whether the stream is more than half full, and whether an event may have a time of its own. An event of that size is about to be
// stored.
func (h *historyShare) crowded(ctx context.Context, size int) (crowded, hasTTL bool) {
	var seen *jetstream.StreamInfo
	if h.isDue() {
		// Others do not wait for the answer, and go by the one before. So do all if there is none.
		seen, _ = h.look(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen != nil {
		h.stored, h.hasTTL = seen.State.Bytes, seen.Config.AllowMsgTTL
	}
	h.stored += uint64(size)
	return h.stored > h.half, h.hasTTL
}

// isDue reports whether it is time to look at the stream, which is up to the caller then.
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

// forSoLong returns the option of an event that the stream keeps for that time, none if it is zero.
func forSoLong(ttl time.Duration) []jetstream.PublishOpt {
	if ttl == 0 {
		return nil
	}
	return []jetstream.PublishOpt{jetstream.WithMsgTTL(ttl)}
}

// lookAtHistory returns what StreamHistory holds.
func (b *Bus) lookAtHistory(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := b.history.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", StreamHistory, err)
	}
	return info, nil
}
