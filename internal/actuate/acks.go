package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// redelivered is how long after its delivery an unacked event has certainly been delivered again, if the actuator that took it has died.
const redelivered = 2 * takeoverWait

// acks knows which events are acked. The consumer itself reports only up to which event all are acked, and an event that is held, for example
// because a Rollout was aborted, can keep that position unchanged for weeks. But an unacked event of an earlier leader is soon delivered again. So
// an event that was delivered long ago and is not in flight here is acked, if no more events are in flight at the server than here.
type acks struct {
	inFlight *inFlightEvents
	now      func() time.Time

	// old is the position up to which every event was delivered more than redelivered ago. mark is the delivered position at the time marked.
	old, mark uint64
	marked    time.Time
}

// observe records what the server reports. Call it before has, and call it repeatedly: a position only becomes old with time.
func (a *acks) observe(lag events.Lag) {
	now := a.now()
	switch {
	case lag.Delivered < a.mark:
		a.old, a.mark, a.marked = 0, lag.Delivered, now // The stream or the consumer was recreated.
	case now.Sub(a.marked) >= redelivered:
		a.old, a.mark, a.marked = a.mark, lag.Delivered, now
	}
}

// has reports whether, judging by the server's last report, an event is certainly acked, or was taken here.
func (a *acks) has(seq uint64, lag events.Lag) bool {
	return seq <= lag.AckFloor || seq <= a.old && a.inFlight.sources(lag.Delivered) >= lag.AckPending
}
