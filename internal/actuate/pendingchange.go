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
	// event is the event of the change. It replaces earlier events of the source: keeping them all would fill the memory if a source is written again
	// and again.
	event *takenEvent
	// since is when the first change of the source came, possibly to an earlier leader.
	since time.Time
	// earlier are the spans of the replaced events, the newest last.
	earlier []trace.SpanContext
}

// follow makes the change that of a later event of the source.
func (c *pendingChange) follow(e *takenEvent) {
	before := c.event
	c.change, c.event = e.change, e
	e.Hold()
	c.keep(e.earlier...)
	if before != nil {
		c.replace(before)
	}
}

// replace takes the place of an earlier event of the source.
func (c *pendingChange) replace(before *takenEvent) {
	c.keep(before.span.SpanContext())
	before.span.AddLink(trace.Link{SpanContext: c.event.span.SpanContext()})
	before.release()
}

func (c *pendingChange) keep(earlier ...trace.SpanContext) {
	c.earlier = append(c.earlier, earlier...)
	c.earlier = c.earlier[max(0, len(c.earlier)-maxEarlier):]
}
