package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// secretDestination is in the names of the spans of Secrets' events.
const secretDestination = "keyturn.v1.{cluster}.secret.{namespace}.{name}"

// tracedRig is a rig whose programs send their spans to a Jaeger.
type tracedRig struct{ *rig }

// sound checks what holds for every trace: it has one root, every parent is in it, nothing begins before its parent does,
// and Jaeger has nothing to say against it.
func (r *tracedRig) sound(trace testbed.Trace) {
	r.Helper()
	if len(trace.Warnings) > 0 {
		r.Errorf("Jaeger warns of the trace: %q", trace.Warnings)
	}
	byID, roots := map[string]testbed.Span{}, 0
	for _, span := range trace.Spans {
		byID[span.ID] = span
	}
	for _, span := range trace.Spans {
		if len(span.Warnings) > 0 {
			r.Errorf("Jaeger warns of %s: %q", span.Operation, span.Warnings)
		}
		if span.Parent == "" {
			roots++
			continue
		}
		parent, ok := byID[span.Parent]
		if !ok {
			r.Errorf("%s is an orphan", span.Operation)
		} else if span.Start.Before(parent.Start) {
			r.Errorf("%s began %s before its parent %s", span.Operation, parent.Start.Sub(span.Start), parent.Operation)
		}
	}
	if roots != 1 {
		r.Errorf("roots of the trace: got %d, want 1", roots)
	}
	if r.Failed() {
		r.Logf("the trace:\n%s", outline(trace))
	}
}

func spansOf(trace testbed.Trace, operation string) []testbed.Span {
	return slices.DeleteFunc(slices.Clone(trace.Spans), func(span testbed.Span) bool { return span.Operation != operation })
}

// only returns the only span of an operation.
func (r *tracedRig) only(trace testbed.Trace, operation string) testbed.Span {
	r.Helper()
	found := spansOf(trace, operation)
	if len(found) != 1 {
		r.Fatalf("spans called %s: got %d, want 1:\n%s", operation, len(found), outline(trace))
	}
	return found[0]
}

// outline writes a trace as a tree of its spans, each with its service and kind.
func outline(trace testbed.Trace) string {
	var out strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, span := range trace.Spans {
			if span.Parent == parent {
				fmt.Fprintf(&out, "%s%s: %s (%s)\n", indent, span.Service, span.Operation, span.Tags["span.kind"])
				write(span.ID, indent+"  ")
			}
		}
	}
	write("", "")
	return out.String()
}

// tagged checks some tags of a span. An empty one is to be missing.
func (r *tracedRig) tagged(span testbed.Span, want map[string]string) {
	r.Helper()
	got := map[string]string{}
	for key := range want {
		got[key] = span.Tags[key]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("tags of %s (-want +got):\n%s", span.Operation, diff)
	}
}

// pointsTo checks that a program logged the message with the trace, and with a span of it, at the top level.
func (r *tracedRig) pointsTo(trace testbed.Trace, program *programs.Program, message string) {
	r.Helper()
	for line := range strings.Lines(program.Output()) {
		var entry struct {
			Msg     string
			TraceID string `json:"trace_id"`
			SpanID  string `json:"span_id"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Msg != message || entry.TraceID != trace.ID {
			continue
		}
		if !slices.ContainsFunc(trace.Spans, func(span testbed.Span) bool { return span.ID == entry.SpanID }) {
			r.Errorf("%q of the %s has the span_id %s, which is not in the trace", message, program.Name(), entry.SpanID)
		}
		return
	}
	r.Errorf("the %s has logged no %q with trace_id %s", program.Name(), message, trace.ID)
}
