package events

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// traceIDPlace stands in a template of links for the id of a trace.
const traceIDPlace = "{traceID}"

// ID is the id of the trace in 32 hexadecimal digits, as tracing backends search for it, or "" where there is none.
func (t TraceContext) ID() string {
	id := trace.SpanContextFromContext(t.Context(context.Background())).TraceID()
	if !id.IsValid() {
		return ""
	}
	return id.String()
}

// Link is where a person sees the trace: the template with the id in it. It is "" without a template or a trace.
func (t TraceContext) Link(template string) string {
	id := t.ID()
	if template == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(template, traceIDPlace, id)
}

// ValidateTraceURL checks a template of [TraceContext.Link]. The empty one is valid: there are no links then.
func ValidateTraceURL(template string) error {
	if template == "" {
		return nil
	}
	if !strings.Contains(template, traceIDPlace) {
		return fmt.Errorf("%q has no %s in it", template, traceIDPlace)
	}
	parsed, err := url.Parse(strings.ReplaceAll(template, traceIDPlace, "0"))
	switch {
	case err != nil:
		return fmt.Errorf("%q is no URL", template)
	case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
		return errors.New("want a URL that begins with http:// or https://")
	}
	return nil
}
