package sources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// causedBy compares a Secret with its last event through a view, and returns who wrote it and why. It stores the new event in before.
func causedBy(t *testing.T, v *viewTest, before **lastEvent, secret *corev1.Secret) events.Cause {
	t.Helper()
	change, ok := secretSource.assess(v.view, *before, reducedOf(t, secretSource, secret), false)
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
	merging := func(name string, annotations map[string]string) *object {
		resource := externalSecretOf(t, name, 2, "True", "1-a", annotations)
		resource.Object["spec"] = map[string]any{"target": map[string]any{"name": "db", "creationPolicy": "Merge"}}
		return reducedOf(t, externalSecretSource, resource)
	}
	v := viewOf(t, epoch, merging("a", nil), merging("b", nil), merging("c", nil))
	var before *lastEvent
	if cause := causedBy(t, v, &before, secretOf("shop", "db", "u", "1", "one")); cause != (events.Cause{Source: "externalsecret/a"}) {
		t.Errorf("observed with the cause %+v", cause)
	}
	v = viewOf(t, epoch, merging("a", nil), merging("b", askedFor(rotation)), merging("c", nil))
	if cause := causedBy(t, v, &before, secretOf("shop", "db", "u", "6", "two")); cause != (events.Cause{Source: "externalsecret/b", Event: rotation}) {
		t.Errorf("the cause is %+v", cause)
	}
	if cause := causedBy(t, v, &before, secretOf("shop", "db", "u", "7", "three")); cause != (events.Cause{Source: "externalsecret/a", Earlier: rotation}) {
		t.Errorf("the cause of the next change is %+v", cause)
	}
}

// Somebody puts the Secret on hold before the operator writes what was requested.
func TestAHoldIsNotTheEffectOfARequest(t *testing.T) {
	var before *lastEvent
	causedBy(t, viewOf(t, epoch), &before, writtenBy(secretOf("shop", "db", "u", "1", "one")))
	v := viewOf(t, epoch, reducedOf(t, externalSecretSource, externalSecretOf(t, "db", 2, "True", "1-a", askedFor(rotation))))
	for _, step := range []struct {
		name, version, value, hold string
		want                       events.Cause
	}{
		{"it is on hold", "2", "one", "migration", events.Cause{Source: "externalsecret/db"}},
		{"what was requested is written", "3", "two", "migration", events.Cause{Source: "externalsecret/db", Event: rotation}},
		{"the hold is taken off", "4", "two", "", events.Cause{Source: "externalsecret/db", Earlier: rotation}},
		{"nobody asks for the next change", "5", "three", "", events.Cause{Source: "externalsecret/db", Earlier: rotation}},
	} {
		secret := onHold(reducedOf(t, secretSource, writtenBy(secretOf("shop", "db", "u", step.version, step.value))), step.hold)
		change, ok := secretSource.assess(v.view, before, secret, false)
		if !ok || change.Cause == nil || *change.Cause != step.want {
			t.Fatalf("%s: the cause is %+v (%t), want %+v", step.name, change.Cause, ok, step.want)
		}
		before = mustLast(t, change)
	}
}

func TestTheWriterIsKnownWithoutWatchingExternalSecrets(t *testing.T) {
	v := viewOf(t, epoch)
	var db, mine *lastEvent
	if cause := causedBy(t, v, &db, writtenBy(secretOf("shop", "db", "u", "1", "one"))); cause != (events.Cause{Source: "externalsecret/db"}) {
		t.Errorf("db is observed with the cause %+v", cause)
	}
	if cause := causedBy(t, v, &mine, annotated(secretOf("shop", "mine", "v", "1", "one"), askedFor(rotation))); cause != (events.Cause{}) {
		t.Errorf("mine is observed with the cause %+v", cause)
	}
	changed := reducedOf(t, secretSource, annotated(writtenBy(secretOf("shop", "db", "u", "2", "two")), askedFor(rotation)))
	change, ok := secretSource.assess(v.view, db, changed, false)
	if want := (events.Cause{Source: "externalsecret/db", Event: rotation}); !ok || change.Cause == nil || *change.Cause != want {
		t.Errorf("the change is %+v", change)
	}
	if change.Trace.Parent != testTraceparent {
		t.Errorf("the change belongs to the trace %q", change.Trace.Parent)
	}
}
