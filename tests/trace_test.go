package tests

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit/traces"
)

// spans are those that the programs of a test have sent.
type spans struct{ *traces.Receiver }

// one returns the only span of a name, or nil while there is none. Patches of records, which belong to no change, do not count.
func (s *spans) one(t *testing.T, name string) *otlp.Span {
	t.Helper()
	var found []*otlp.Span
	for _, span := range s.Spans() {
		isRecord := strings.HasPrefix(name, "patch ") && len(span.GetParentSpanId()) == 0
		if span.GetName() == name && !isRecord {
			found = append(found, span.Span)
		}
	}
	if len(found) > 1 {
		t.Fatalf("spans called %q: got %d, want 1", name, len(found))
	}
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// serviceOf returns the name of the program of a span.
func (s *spans) serviceOf(span *otlp.Span) string {
	for _, received := range s.Spans() {
		if received.Span == span {
			return received.Service
		}
	}
	return ""
}

func TestOneTraceLeadsFromTheChangeToTheLastReadyPod(t *testing.T) {
	t.Parallel()
	received := &spans{traces.Receive(t)}
	r := newRig(t, programs.Options{
		ActuatorArgs: []string{"--settle", "50ms"},
		Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + received.URL(), "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100",
		},
	})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 2, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	completed := r.outcomeOf("web", events.VerbCompleted)

	const destination = "keyturn.v1.{cluster}.secret.{namespace}.{name}"
	chain := []struct{ name, parent, service string }{
		{"detect secret", "", "keyturn-watcher"},
		{"publish " + destination, "detect secret", "keyturn-watcher"},
		{"process " + destination, "publish " + destination, "keyturn-actuator"},
		{"plan", "process " + destination, "keyturn-actuator"},
		{"patch deployment", "plan", "keyturn-actuator"},
		{"rollout deployment", "plan", "keyturn-actuator"},
	}
	r.eventually("every span of the change has arrived", func(context.Context) bool {
		for _, link := range chain {
			if received.one(t, link.name) == nil {
				return false
			}
		}
		return true
	})
	trace := received.one(t, "publish "+destination).GetTraceId()
	for _, link := range chain {
		span := received.one(t, link.name)
		if !slices.Equal(span.GetTraceId(), trace) {
			t.Errorf("%s is in another trace", link.name)
		}
		if service := received.serviceOf(span); service != link.service {
			t.Errorf("service of %s: got %s, want %s", link.name, service, link.service)
		}
		if parent := received.one(t, link.parent); !slices.Equal(span.GetParentSpanId(), parent.GetSpanId()) {
			t.Errorf("the parent of %s is not %q", link.name, link.parent)
		}
	}

	rollout := received.one(t, "rollout deployment")
	if end := time.Unix(0, int64(rollout.GetEndTimeUnixNano())); end.Before(completed.StartedAt) {
		t.Errorf("the rollout's span ends at %s, before the patch at %s", end, completed.StartedAt)
	}
	id := hex.EncodeToString(trace)
	for what, traceparent := range map[string]string{
		"the pod template":      r.deployment("web").Spec.Template.Annotations["keyturn.dev/traceparent"],
		"the completed outcome": completed.Trace.Parent,
	} {
		if !strings.Contains(traceparent, id) {
			t.Errorf("traceparent of %s: got %q, want trace %s", what, traceparent, id)
		}
	}
	for _, program := range []*programs.Program{r.watcher, r.actuator} {
		if !strings.Contains(program.Output(), `"trace_id":"`+id+`"`) {
			t.Errorf("no log line of the %s is of trace %s", program.Name(), id)
		}
	}
}
