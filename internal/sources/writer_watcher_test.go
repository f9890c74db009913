package sources

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	rotation      = "bao/root/secret/shop/db/7"
	otherRotation = "bao/root/secret/shop/db/8"
	testTraceID   = "4bf92f3577b34da6a3ce929d0e0e4736"

	testTraceparent = "00-" + testTraceID + "-00f067aa0ba902b7-01"
)

// askedFor returns the annotations that request a sync because of an event.
func askedFor(event string) map[string]string {
	return map[string]string{"keyturn.dev/cause": event, "keyturn.dev/traceparent": testTraceparent}
}

// writtenBy makes the ExternalSecret db the owner of a Secret.
func writtenBy(secret *corev1.Secret) *corev1.Secret {
	controls := true
	secret.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "db", Controller: &controls},
	}
	return secret
}

func annotated(secret *corev1.Secret, annotations map[string]string) *corev1.Secret {
	secret.Annotations = annotations
	return secret
}

// causes are the events so far, each with its cause and whether it is part of the trace of the rotation.
func (b *bench) causes() []string {
	b.Helper()
	var list []string
	for _, change := range b.changes() {
		var line strings.Builder
		line.WriteString(change.Source.String() + " " + string(change.Verb))
		if cause := change.Cause; cause != nil {
			for _, part := range []struct{ name, value string }{
				{"by", cause.Source}, {"because of", cause.Event}, {"earlier", cause.Earlier},
			} {
				if part.value != "" {
					line.WriteString(" " + part.name + " " + part.value)
				}
			}
		}
		if strings.Contains(change.Trace.Parent, testTraceID) {
			line.WriteString(" traced")
		}
		list = append(list, line.String())
	}
	return list
}

func (b *bench) wantCauses(wanted ...string) {
	b.Helper()
	var got []string
	b.eventually(strconv.Itoa(len(wanted))+" events are published", func() bool {
		got = b.causes()
		return len(got) >= len(wanted)
	})
	if diff := cmp.Diff(wanted, got); diff != "" {
		b.Fatalf("causes (-want +got):\n%s", diff)
	}
}

// knows waits until a watcher has seen a resourceVersion of the ExternalSecret db.
func (b *bench) knows(w *Watcher, version string) {
	b.Helper()
	b.eventually("the ExternalSecret of version "+version+" is cached", func() bool {
		found := w.informers.cached.Lookup(events.Source{Kind: events.KindExternalSecret, Namespace: "shop", Name: "db"})
		return found != nil && found.ResourceVersion == version
	})
}

// traced are the options of a watcher whose spans are recorded.
func (b *bench) traced(options Options) (Options, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	options.Tracer = provider.Tracer("test")
	return options, spans
}

func TestAChangeOfASecretIsPartOfTheTraceOfItsCause(t *testing.T) {
	for _, tt := range []struct {
		name string
		// secret returns the Secret as the operator writes it when a sync is requested because of an event.
		secret func(version, value, event string) *corev1.Secret
	}{
		{
			"where the operator copies the annotations",
			func(version, value, event string) *corev1.Secret {
				return annotated(writtenBy(secretOf("shop", "db", "u", version, value)), askedFor(event))
			},
		},
		{
			"where it does not, because there is a template",
			func(version, value, _ string) *corev1.Secret {
				return writtenBy(secretOf("shop", "db", "u", version, value))
			},
		},
		{
			"where it does not own the Secret",
			func(version, value, _ string) *corev1.Secret { return secretOf("shop", "db", "u", version, value) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, writtenBy(secretOf("shop", "db", "u", "1", "one")))
			b.put(externalSecretOf(t, "db", 2, "True", "1-a", nil))
			options, spans := b.traced(b.everyKind())
			w, stop := b.startReady(options)
			defer stop()
			b.eventually("both are observed", func() bool { return len(b.causes()) == 2 })
			want := b.causes()

			b.put(externalSecretOf(t, "db", 3, "True", "1-a", askedFor(rotation))) // asked, and not synced yet
			b.knows(w, "3")
			b.update(tt.secret("4", "two", rotation))
			want = append(want, "secret/db changed by externalsecret/db because of "+rotation+" traced")
			b.wantCauses(want...)
			b.put(externalSecretOf(t, "db", 5, "True", "1-b", askedFor(rotation)))
			want = append(want, "externalsecret/db synced because of "+rotation+" traced")
			b.wantCauses(want...)

			// Another client writes the Secret: the request was already fulfilled.
			b.update(tt.secret("6", "three", rotation))
			want = append(want, "secret/db changed by externalsecret/db earlier "+rotation)
			b.wantCauses(want...)
			b.put(externalSecretOf(t, "db", 7, "True", "1-c", askedFor(rotation)))
			want = append(want, "externalsecret/db synced earlier "+rotation)
			b.wantCauses(want...)

			b.put(externalSecretOf(t, "db", 8, "True", "1-c", askedFor(otherRotation)))
			b.knows(w, "8")
			b.update(tt.secret("9", "four", otherRotation))
			want = append(want, "secret/db changed by externalsecret/db because of "+otherRotation+" traced")
			b.wantCauses(want...)

			b.eventually("both changes were detected in the trace, as children of what asked for them", func() bool {
				detected := 0
				for _, span := range spans.GetSpans() {
					if span.Name == "detect secret" && span.Parent.IsRemote() && span.Parent.SpanID().String() == "00f067aa0ba902b7" {
						detected++
					}
				}
				return detected >= 2 // An event that has no answer is published again.
			})
		})
	}
}

func TestChangesAreNotPublishedBeforeItIsKnownWhoWritesWhat(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u", "1", "one"))
	b.put(externalSecretOf(t, "db", 2, "True", "1-a", nil))
	b.ready(b.everyKind())()
	b.eventually("both are observed", func() bool { return len(b.causes()) == 2 })
	b.put(externalSecretOf(t, "db", 3, "True", "1-a", askedFor(rotation)))
	b.update(secretOf("shop", "db", "u", "4", "two"))

	// The API server is slow to answer the one list.
	listed := make(chan struct{})
	b.dynamic.PrependReactor("list", "externalsecrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		<-listed
		return false, nil, nil
	})
	b.client.ClearActions()
	_, stop := b.start(b.everyKind())
	defer stop()
	polls := 0
	b.eventually("the Secrets have been watched for a while", func() bool {
		if slices.ContainsFunc(b.client.Actions(), func(a k8stesting.Action) bool { return a.Matches("watch", "secrets") }) {
			polls++
		}
		return polls > 20
	})
	close(listed)
	b.eventually("the change is published", func() bool { return len(b.causes()) == 3 })
	if got, want := b.causes()[2], "secret/db changed by externalsecret/db because of "+rotation+" traced"; got != want {
		t.Errorf("event %s\n want %s", got, want)
	}
}
