package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// secretDestination is in the names of the spans of Secrets' events.
const secretDestination = "keyturn.v1.{cluster}.secret.{namespace}.{name}"

// tracedRig is a rig whose programs send their spans to a Jaeger, or to the test itself.
type tracedRig struct {
	*rig
	traces traceSource
	// jaeger is nil if it is the test that has the spans.
	jaeger *testbed.Jaeger
}

// traceSource returns the traces in which one span of a service has all of the tags, oldest first. A testbed.Jaeger implements it.
type traceSource interface {
	Traces(ctx context.Context, service string, tags map[string]string) ([]testbed.Trace, error)
}

// newTracedRig is newRig with programs that send their spans to the test.
func newTracedRig(t *testing.T, options programs.Options) *tracedRig {
	t.Helper()
	received, endpoint := receiveOTLP(t)
	options.Env = append(options.Env,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100")
	return &tracedRig{rig: newRig(t, options), traces: received}
}

// newJaegerRig is newRig with programs that send their spans to a Jaeger of the test.
func newJaegerRig(t *testing.T, options programs.Options) *tracedRig {
	t.Helper()
	jaeger, err := testbed.StartJaeger(t.Context(), testbed.JaegerOptions{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jaeger.Stop)
	options.Env = append(options.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+jaeger.OTLPHTTP(), "OTEL_BSP_SCHEDULE_DELAY=100")
	return &tracedRig{rig: newRig(t, options), traces: jaeger, jaeger: jaeger}
}

// trace waits for the one trace of a Secret's change that has the spans. It searches by the Secret, as a person does.
func (r *tracedRig) trace(secret string, operations ...string) testbed.Trace {
	r.Helper()
	subject := "/api/v1/namespaces/" + r.namespace + "/secrets/" + secret
	var found []testbed.Trace
	r.eventually(fmt.Sprintf("there are %v of %s", operations, subject), func(ctx context.Context) bool {
		var err error
		found, err = r.traces.Traces(ctx, "keyturn-watcher", map[string]string{"cloudevents.event_subject": subject})
		if err != nil {
			r.Fatal(err)
		}
		return len(found) > 0 && !slices.ContainsFunc(operations, func(operation string) bool { return len(spansOf(found[0], operation)) == 0 })
	})
	if len(found) != 1 {
		r.Fatalf("traces of %s: got %d, want 1", subject, len(found))
	}
	r.sound(found[0])
	return found[0]
}

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

// plainOutline is what every change looks like that rolls one Deployment without trouble.
const plainOutline = `keyturn-watcher: detect secret (internal)
  keyturn-watcher: publish ` + secretDestination + ` (producer)
    keyturn-actuator: process ` + secretDestination + ` (consumer)
      keyturn-actuator: plan (internal)
        keyturn-actuator: patch deployment (client)
        keyturn-actuator: rollout deployment (internal)
`

func (r *tracedRig) looksLike(trace testbed.Trace, want string) {
	r.Helper()
	if diff := cmp.Diff(want, outline(trace)); diff != "" {
		r.Errorf("the trace (-want +got):\n%s", diff)
	}
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
