package events

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestSubjectTemplateHasTheTokensOfASubject(t *testing.T) {
	for _, kind := range SourceKinds() {
		subject := Subject("prod", Source{Kind: kind, Namespace: "shop", Name: "db"})
		template, tokens := strings.Split(SubjectTemplate(kind), "."), strings.Split(subject, ".")
		if len(template) != len(tokens) {
			t.Fatalf("%s has other tokens than %s", SubjectTemplate(kind), subject)
		}
		for i, token := range template {
			if !strings.HasPrefix(token, "{") && token != tokens[i] {
				t.Errorf("token %d of %s: got %s, want %s", i+1, SubjectTemplate(kind), token, tokens[i])
			}
		}
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
			e, err := change.Event()
			must(t, err)
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
