package inspect

import (
	"cmp"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// traceLink returns a link to a trace, or its ID without a template. It is empty if there is no trace.
func traceLink(trace events.TraceContext, template string) string {
	return cmp.Or(trace.Link(template), trace.ID())
}

// traceOf returns the id of the trace of an event, or "" if it has none.
func traceOf(stored events.Stored) string {
	parent, _ := stored.Event.Extensions()["traceparent"].(string)
	return events.TraceContext{Parent: parent}.ID()
}

// isTraceID reports whether a text has the form of TraceContext.ID.
func isTraceID(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}
