package actuate

import (
	"context"
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
	c.earlier = newestSpans(c.earlier, e.earlier...)
	if before != nil {
		c.replace(before)
	}
}

// replace takes the place of an earlier event of the source.
func (c *pendingChange) replace(before *takenEvent) {
	c.earlier = newestSpans(c.earlier, before.span.SpanContext())
	before.span.AddLink(trace.Link{SpanContext: c.event.span.SpanContext()})
	before.release()
}

// newestSpans returns earlier spans and those that follow them, as far as they are kept.
func newestSpans(earlier []trace.SpanContext, more ...trace.SpanContext) []trace.SpanContext {
	earlier = append(earlier, more...)
	return earlier[max(0, len(earlier)-maxEarlier):]
}

// takenEvent is an event that the loop has taken, until nothing holds it any more: no pending change of a workload, and no sync of an ExternalSecret.
type takenEvent struct {
	change events.Change
	// storedAt is when the stream stored it, and at is when the loop took it.
	storedAt, at time.Time
	// span is the span of its processing. If the event was found, and did not come while this actuator led, it is the span that created the event.
	span trace.Span
	// earlier are the spans of the events of the source that it has replaced before they were taken, the newest last.
	earlier []trace.SpanContext
	holds   int
	// finished is called once nothing holds it any more. It is nil if the event was found.
	finished func(*takenEvent)
}

// foundEvent returns the event of a change that was there before anybody asked.
func foundEvent(ctx context.Context, change events.Change, storedAt, now time.Time) *takenEvent {
	created := change.Trace.Context(ctx)
	return &takenEvent{change: change, storedAt: storedAt, at: now, span: trace.SpanFromContext(created)}
}

// Hold keeps the event for one more that is not finished with it.
func (e *takenEvent) Hold() { e.holds++ }

// Release undoes one Hold. The error is why whoever held it has given up.
func (e *takenEvent) Release(err error) {
	if err != nil {
		recordError(e.span, err)
	}
	e.release()
}

func (e *takenEvent) release() {
	e.holds--
	if e.holds == 0 && e.finished != nil {
		e.finished(e)
	}
}

// context returns ctx with the span of the event, and without its cancellation: an event is finished even if the loop stops.
func (e *takenEvent) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), e.span)
}
