package actuate

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// maxEarlier is how many spans of earlier events are kept.
const maxEarlier = 16

// pendingChange is a change of one source that one workload has to be decided for.
type pendingChange struct {
	change events.Change
	// from is the content before the first change that is not decided yet, or nil if that is not known.
	from *events.Change
	// owed means that the workload was to be rolled for it when that was last decided, or before.
	owed bool
	// doubted means that a patch for it failed, but may have been applied nevertheless.
	doubted bool
	// unanswered means the same of a patch that rolls the workload for it.
	unanswered bool
	// event is the event of the change, which the change keeps open. It replaces earlier events of the source: the stream, too, keeps only the
	// last one, and keeping them all would fill the memory if a source is written again and again.
	event *inFlightEvent
	// received is when the first event of the source came, and since is its events.Delivery.Since.
	received, since time.Time
	// earlier are the spans of the replaced events, the newest last.
	earlier []trace.SpanContext
}

// replaced is an event that a later one has replaced in a pending change.
type replaced struct{ event, by *inFlightEvent }

// follow replaces an earlier event of the source by the event of the change. Before is nil if there is no earlier one.
func (c *pendingChange) follow(before *inFlightEvent) []replaced {
	if before == nil {
		return nil
	}
	c.earlier = append(c.earlier, before.span.SpanContext())
	c.earlier = c.earlier[max(0, len(c.earlier)-maxEarlier):]
	return []replaced{{event: before, by: c.event}}
}

// came returns when the first change of the source came, possibly to an earlier leader.
func (c *pendingChange) came() time.Time { return cameAt(c.since, c.received) }

// cameAt returns when a change came, possibly to an earlier leader, given its events.Delivery.Since and when it was received.
func cameAt(since, received time.Time) time.Time {
	if !since.IsZero() && since.Before(received) {
		return since
	}
	return received
}
