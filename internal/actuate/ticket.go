package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// ticket is a delivered event until every workload that depends on its source is done with it. Then, and not before, the
// event is acknowledged: so whatever waits, waits on the stream as well.
type ticket struct {
	delivery *events.Delivery
	// ctx carries the span of the processing.
	ctx  context.Context
	span trace.Span
	// open counts the workloads that are not done.
	open int
	// err is why a workload could not be rolled for good. The event then goes to the dead letters.
	err error
}

// claim is what one source asks of one workload.
type claim struct {
	change events.Change
	// from is the content before the first change that is not decided yet; nil where it is not known.
	from    *events.Change
	tickets []*ticket
}

// newest is the ticket of the event that the claim is about.
func (c *claim) newest() *ticket { return c.tickets[len(c.tickets)-1] }
