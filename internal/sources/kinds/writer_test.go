package kinds

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestRequestOf(t *testing.T) {
	const id = "bao/team-a%2Feu/kv/shop/db v2 ü/7"
	for _, tt := range []struct {
		name, cause, traceparent string
		want                     request
	}{
		{"an event with its trace", id, testTraceparent, request{event: id, trace: events.TraceContext{Parent: testTraceparent}}},
		{"an event whose trace is none", id, "00-nonsense", request{event: id}},
		{"no trace without an event", "", testTraceparent, request{}},
		{"none that is longer", strings.Repeat("x", 1201), testTraceparent, request{}},
		{"none that is not UTF-8", "a\xff", "", request{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := requestOf(map[string]string{"keyturn.dev/cause": tt.cause, "keyturn.dev/traceparent": tt.traceparent})
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestRequestOfWhatAClusterExternalSecretMakes(t *testing.T) {
	const id = "bao/root/kv/shop/db/7"
	forced := map[string]string{"external-secrets.io/force-sync": id + "-r1@" + testTraceparent}
	if got, want := requestOf(forced), (request{event: id, trace: events.TraceContext{Parent: testTraceparent}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := requestOf(map[string]string{"external-secrets.io/force-sync": "1763752800"}); got != (request{}) {
		t.Errorf("for what somebody else asked for: got %+v, want none", got)
	}
}

func FuzzRequestOf(f *testing.F) {
	f.Add("bao/root/kv/shop/db/7", testTraceparent, "")
	f.Add("a\x00", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "")
	f.Add("\xff", "", "")
	f.Add("", "", "bao/root/kv/shop/db/7-r1@"+testTraceparent)
	f.Fuzz(func(t *testing.T, cause, traceparent, forced string) {
		got := requestOf(map[string]string{
			"keyturn.dev/cause": cause, "keyturn.dev/traceparent": traceparent, "external-secrets.io/force-sync": forced,
		})
		if got.event != "" && got.event != cause && !strings.HasPrefix(forced, got.event) ||
			got.trace.Parent != "" && got.trace.Parent != traceparent && !strings.HasSuffix(forced, got.trace.Parent) {
			t.Errorf("%q, %q, %q are read as %+v", cause, traceparent, forced, got)
		}
		change := events.Change{
			Cluster: "c", Source: testSource, Verb: events.VerbChanged, UID: "u", ResourceVersion: "1", Fingerprint: printed("0a", "1"), Time: epoch,
		}
		setCause(&change, events.Cause{Source: "externalsecret/db"}, got, "")
		encoded, err := change.Encode()
		if err != nil {
			t.Fatalf("%q, %q, %q cannot be published: %v", cause, traceparent, forced, err)
		}
		if _, err := encoded.Change(); err != nil {
			t.Errorf("%q, %q, %q cannot be read: %v", cause, traceparent, forced, err)
		}
	})
}

func TestACauseIsThatOfOneChange(t *testing.T) {
	writer := events.Cause{Source: "externalsecret/db"}
	trace := events.TraceContext{Parent: testTraceparent}
	asked := func(event string) request { return request{event: event, trace: trace} }
	type step struct {
		verb   events.Verb
		asked  request
		want   events.Cause
		traced bool
	}
	caused := func(event, earlier string) events.Cause {
		return events.Cause{Source: writer.Source, Event: event, Earlier: earlier}
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"the same request is not the cause of the next change, nor of those after it", []step{
			{events.VerbChanged, asked("e1"), caused("e1", ""), true},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
			{events.VerbChanged, asked("e2"), caused("e2", ""), true},
		}},
		{"what has failed is tried again for the same request", []step{
			{events.VerbSynced, asked("e1"), caused("e1", ""), true},
			{events.VerbFailed, asked("e2"), caused("e2", "e1"), true},
			{events.VerbFailed, asked("e2"), caused("e2", "e1"), true},
			{events.VerbSynced, asked("e2"), caused("e2", ""), true},
			{events.VerbSynced, asked("e2"), caused("", "e2"), false},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before *LastEvent
			for i, s := range tt.steps {
				change := events.Change{Verb: s.verb, Fingerprint: printed("0a", "1")}
				setCause(&change, writer, s.asked, before.usedRequest())
				if diff := cmp.Diff(&s.want, change.Cause); diff != "" {
					t.Fatalf("step %d: cause (-want +got):\n%s", i+1, diff)
				}
				if traced := change.Trace == trace; traced != s.traced {
					t.Fatalf("step %d: part of the trace: %t, want %t", i+1, traced, s.traced)
				}
				before = mustLast(t, change)
			}
		})
	}
}

func TestWhatIsKeptOfASourceIsSmall(t *testing.T) {
	// There may be one for each Secret. The sizes are size classes of the allocator.
	if size := unsafe.Sizeof(Object{}); size > 144 {
		t.Errorf("an object has %d bytes", size)
	}
	if size := unsafe.Sizeof(settled{}); size > 96 {
		t.Errorf("one whose content the stream has has %d bytes", size)
	}
	if size := unsafe.Sizeof(LastEvent{}); size > 192 {
		t.Errorf("what the stream says of it has %d bytes", size)
	}
}

const rotation = "bao/root/secret/shop/db/7"

// askedFor returns the annotations that request a sync because of an event.
func askedFor(event string) map[string]string {
	return map[string]string{"keyturn.dev/cause": event, "keyturn.dev/traceparent": testTraceparent}
}

// writtenBy makes the ExternalSecret db the owner of a Secret.
func writtenBy(secret *corev1.Secret) *corev1.Secret {
	secret.OwnerReferences = []metav1.OwnerReference{ownedByESO.owner}
	return secret
}

// causedBy compares a Secret with its last event through a view, and returns who wrote it and why. It stores the new event in before.
func causedBy(t *testing.T, v *viewTest, before **LastEvent, secret *corev1.Secret) events.Cause {
	t.Helper()
	change, ok := secretKind{}.Assess(v.View, *before, State{Now: reducedOf(t, secretKind{}, secret)})
	if !ok {
		t.Fatal("there is nothing to say")
	}
	*before = mustLast(t, change)
	if change.Cause == nil {
		return events.Cause{}
	}
	return *change.Cause
}

func TestOfSeveralWritersTheOneThatWasAskedIsTheCause(t *testing.T) {
	merging := func(name string, annotations map[string]string) *Object {
		resource := externalSecretOf(t, name, annotations)
		resource.Object["spec"] = map[string]any{"target": map[string]any{"name": "db", "creationPolicy": "Merge"}}
		return reducedOf(t, externalSecretKind{}, resource)
	}
	v := viewOf(t, epoch, merging("a", nil), merging("b", nil), merging("c", nil))
	var before *LastEvent
	if cause := causedBy(t, v, &before, secretOf("db", "u", "1", "one")); cause != (events.Cause{Source: "externalsecret/a"}) {
		t.Errorf("observed with the cause %+v", cause)
	}
	v = viewOf(t, epoch, merging("a", nil), merging("b", askedFor(rotation)), merging("c", nil))
	if cause := causedBy(t, v, &before, secretOf("db", "u", "6", "two")); cause != (events.Cause{Source: "externalsecret/b", Event: rotation}) {
		t.Errorf("the cause is %+v", cause)
	}
	if cause := causedBy(t, v, &before, secretOf("db", "u", "7", "three")); cause != (events.Cause{Source: "externalsecret/a", Earlier: rotation}) {
		t.Errorf("the cause of the next change is %+v", cause)
	}
}

// Somebody puts the Secret on hold before the operator writes what was requested.
func TestAHoldIsNotTheEffectOfARequest(t *testing.T) {
	var before *LastEvent
	causedBy(t, viewOf(t, epoch), &before, writtenBy(secretOf("db", "u", "1", "one")))
	v := viewOf(t, epoch, reducedOf(t, externalSecretKind{}, externalSecretOf(t, "db", askedFor(rotation))))
	for _, step := range []struct {
		name, version, value, hold string
		want                       events.Cause
	}{
		{"it is on hold", "2", "one", "migration", events.Cause{Source: "externalsecret/db"}},
		{"what was requested is written", "3", "two", "migration", events.Cause{Source: "externalsecret/db", Event: rotation}},
		{"the hold is taken off", "4", "two", "", events.Cause{Source: "externalsecret/db", Earlier: rotation}},
		{"nobody asks for the next change", "5", "three", "", events.Cause{Source: "externalsecret/db", Earlier: rotation}},
	} {
		secret := onHold(reducedOf(t, secretKind{}, writtenBy(secretOf("db", "u", step.version, step.value))), step.hold)
		change, ok := secretKind{}.Assess(v.View, before, State{Now: secret})
		if !ok || change.Cause == nil || *change.Cause != step.want {
			t.Fatalf("%s: the cause is %+v (%t), want %+v", step.name, change.Cause, ok, step.want)
		}
		before = mustLast(t, change)
	}
}
