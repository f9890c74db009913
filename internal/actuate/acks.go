package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// redelivered is how long after its delivery an event that nobody has acked has been delivered again, if who took it has died since.
const redelivered = 2 * takeoverWait

// acks knows which events are acked. The consumer itself reports only up to which event all are: one that a workload is held with, such as a Rollout
// that was aborted, keeps that where it is for weeks. But an event of an earlier leader that is not acked is delivered again soon. So of those
// that were delivered long ago, whatever is not in flight here is acked, if no more events are in flight at the server than here.
type acks struct {
	inFlight *inFlightEvents
	now      func() time.Time

	// old is up to where every event was delivered more than redelivered ago, and mark where that was at the time marked.
	old, mark uint64
	marked    time.Time
}

// observe takes what the server says. Call it before has, and more than once: what it says becomes old.
func (a *acks) observe(lag events.Lag) {
	now := a.now()
	switch {
	case lag.Delivered < a.mark:
		a.old, a.mark, a.marked = 0, lag.Delivered, now // The stream or the consumer was made anew.
	case now.Sub(a.marked) >= redelivered:
		a.old, a.mark, a.marked = a.mark, lag.Delivered, now
	}
}

// has reports whether an event is certainly acked, or was taken here, as of what the server has said last.
func (a *acks) has(seq uint64, lag events.Lag) bool {
	return seq <= lag.AckFloor || seq <= a.old && a.inFlight.sources(lag.Delivered) >= lag.AckPending
}
