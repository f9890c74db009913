package events

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTraceContextGoesBothWays(t *testing.T) {
	if got := TraceFrom(t.Context()); got != (TraceContext{}) {
		t.Errorf("got %v without a span", got)
	}
	want := change().Trace
	testkit.WantEqual(t, "trace context", want, TraceFrom(want.Context(t.Context())))
}

func TestTraceContextLeadsToItsTrace(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	const template = "https://traces.example.com/trace/{traceID}?also={traceID}"
	for _, tt := range []struct {
		name, parent, template, id, link string
	}{
		{
			"the id stands wherever the template has it", "00-" + id + "-00f067aa0ba902b7-01", template,
			id, "https://traces.example.com/trace/" + id + "?also=" + id,
		},
		{"without a template there is the id and no link", "00-" + id + "-00f067aa0ba902b7-01", "", id, ""},
		{"without a trace there is neither", "", template, "", ""},
		{"what is broken is no trace", "00-" + id, template, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace := TraceContext{Parent: tt.parent}
			testkit.WantEqual(t, "id", tt.id, trace.ID())
			testkit.WantEqual(t, "link", tt.link, trace.Link(tt.template))
		})
	}
}

func TestValidateTraceURL(t *testing.T) {
	for _, tt := range []struct {
		name, template string
		valid          bool
	}{
		{"nothing is allowed", "", true},
		{"a page of Jaeger", "http://jaeger:16686/trace/{traceID}", true},
		{"a page that is the same for every trace", "http://jaeger:16686", false},
		{"another scheme", "file:///{traceID}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := ""
			if !tt.valid {
				want = fmt.Sprintf("%q, want an http:// or https:// URL with {traceID}", tt.template)
			}
			testkit.WantError(t, ValidateTraceURL(tt.template), want)
		})
	}
}

// A span has the attributes of its event, so that a person who has one can search for the other.
func TestSpanAttributesAreThoseOfTheEvent(t *testing.T) {
	for kind, list := range verbs {
		if !kind.isSource() {
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			change := changeOf(kind, list[1])
			e := encoded(t, change).Event()
			all := change.SpanAttributes()
			attributes := attribute.NewSet(all...)
			if attributes.Len() != len(all) {
				t.Errorf("an attribute is given twice: %v", all)
			}
			for key, want := range map[attribute.Key]string{
				"cloudevents.event_id": e.ID(), "cloudevents.event_source": e.Source(), "cloudevents.event_type": e.Type(),
				"cloudevents.event_subject": e.Subject(), "cloudevents.event_spec_version": e.SpecVersion(),
				"messaging.message.id": e.ID(), "messaging.destination.name": Subject(change.Cluster, change.Source),
				"messaging.destination.template": SubjectTemplate(kind), "k8s.namespace.name": change.Source.Namespace,
			} {
				if value, _ := attributes.Value(key); value.AsString() != want {
					t.Errorf("%s: got %q, want %q", key, value.AsString(), want)
				}
			}
			if attributes.HasValue("k8s.namespace.name") != (change.Source.Namespace != "") {
				t.Error("k8s.namespace.name is to be there where the source is in one, and only there")
			}
		})
	}
}
