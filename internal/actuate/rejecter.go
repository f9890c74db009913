package actuate

import (
	"context"
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// rejectRetry is how long after an event that could not be dead-lettered the next attempt is made.
const rejectRetry = time.Minute

// rejectUnreadable dead-letters the events of sources that cannot be read, each once, until the context is done. It runs beside the loop, because it
// waits for NATS.
func (a *Actuator) rejectUnreadable(ctx context.Context) {
	done := make(map[events.Address]uint64)
	for {
		var retry <-chan time.Time
		unreadable := a.state.Unreadable()
		maps.DeleteFunc(done, func(at events.Address, seq uint64) bool { return unreadable[at] != seq })
		for at, seq := range unreadable {
			if _, known := done[at]; known {
				continue
			}
			if a.reject(ctx, at) {
				done[at] = seq
			} else {
				retry = time.After(rejectRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.state.unreadable:
		case <-retry:
		}
	}
}

// reject dead-letters an event, and reports whether that is done, by whomever.
func (a *Actuator) reject(ctx context.Context, at events.Address) bool {
	reason, err := a.bus.RejectLast(ctx, at)
	source := at.Source()
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		a.log.WarnContext(ctx, "dead letter not published", "source", source.String(), "namespace", source.Namespace,
			"retry_in", rejectRetry, "err", err)
		return false
	case reason != "":
		a.log.WarnContext(ctx, "event rejected", "source", source.String(), "namespace", source.Namespace, "reason", reason)
		a.metrics.reject(ctx, reason)
	}
	return true
}
