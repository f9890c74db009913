package actuate

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// rejectRetry is how long after an event that could not be dead-lettered the next attempt is made.
const rejectRetry = time.Minute

// rejecter dead-letters the events of sources that cannot be read, each once. It runs beside the loop, because it waits for NATS.
type rejecter struct {
	bus   *events.Bus
	state *state
	// rejected is called with the reason of each dead letter.
	rejected func(context.Context, string)
	log      *slog.Logger
}

// run works until the context is done.
func (r *rejecter) run(ctx context.Context) {
	done := make(map[events.Address]uint64)
	for {
		var retry <-chan time.Time
		unreadable := r.state.Unreadable()
		maps.DeleteFunc(done, func(at events.Address, seq uint64) bool { return unreadable[at] != seq })
		for at, seq := range unreadable {
			if _, known := done[at]; known {
				continue
			}
			if r.reject(ctx, at) {
				done[at] = seq
			} else {
				retry = time.After(rejectRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-r.state.unreadable:
		case <-retry:
		}
	}
}

// reject dead-letters an event, and reports whether that is done, by whomever.
func (r *rejecter) reject(ctx context.Context, at events.Address) bool {
	reason, err := r.bus.RejectLast(ctx, at)
	source := at.Source()
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		r.log.WarnContext(ctx, "dead letter not published", "source", source.String(), "namespace", source.Namespace,
			"retry_in", rejectRetry, "err", err)
		return false
	case reason != "":
		r.log.WarnContext(ctx, "event rejected", "source", source.String(), "namespace", source.Namespace, "reason", reason)
		r.rejected(ctx, reason)
	}
	return true
}
