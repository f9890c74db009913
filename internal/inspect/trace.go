package inspect

import (
	"cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// traceLink returns a link to a trace, or its ID without a template. It is empty without a trace.
func traceLink(trace events.TraceContext, template string) string {
	return cmp.Or(trace.Link(template), trace.ID())
}
