package events

import (
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// traceIDPlaceholder stands for the trace id in a link template.
const traceIDPlaceholder = "{traceID}"

// ID returns the trace id in 32 hexadecimal digits, as tracing backends use it, or "" if there is no trace.
func (t TraceContext) ID() string {
	id := trace.SpanContextFromContext(t.remote()).TraceID()
	if !id.IsValid() {
		return ""
	}
	return id.String()
}

// SpanContext returns that of the span. It is not valid if there is none.
func (t TraceContext) SpanContext() trace.SpanContext {
	return trace.SpanContextFromContext(t.remote())
}

// Link returns the URL of the trace in a tracing backend, made from the template. It is "" without a template or a trace.
func (t TraceContext) Link(template string) string {
	id := t.ID()
	if template == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(template, traceIDPlaceholder, id)
}

// ValidateTraceURL checks a template for [TraceContext.Link]. The empty template is valid and disables links.
func ValidateTraceURL(template string) error {
	if template == "" {
		return nil
	}
	parsed, err := url.Parse(strings.ReplaceAll(template, traceIDPlaceholder, "0"))
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" ||
		!strings.Contains(template, traceIDPlaceholder) {
		return fmt.Errorf("%q, want an http:// or https:// URL with %s", template, traceIDPlaceholder)
	}
	return nil
}
