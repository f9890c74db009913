package sources

import (
	"testing"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
)

func TestCompareTellsWhatTheObjectSaysOfItself(t *testing.T) {
	now := objectOf(keyringOf(1), "u", 5, content{"a": "1"})
	now.ignore, now.match = true, true
	c := chain{t: t}
	if got, want := c.see(now, false), "observed u/5 {a} [] ignore match"; got != want {
		t.Errorf("event %s\n want %s", got, want)
	}
	if c.change.Source != testSource || !c.change.WrittenAt.Equal(now.written()) {
		t.Errorf("it is of %v, written at %s", c.change.Source, c.change.WrittenAt)
	}
	if want := flat(now.fingerprints[0]); c.change.Fingerprint != want[""] || c.change.Keys["a"].Fingerprint != want["a"] {
		t.Errorf("it has the fingerprints %s and %v, want %v", c.change.Fingerprint, c.change.Keys, want)
	}
	previous := c.change.Fingerprint
	c.see(objectOf(keyringOf(1), "u", 6, content{"a": "2"}), false)
	if c.change.Previous != previous {
		t.Errorf("the fingerprint before is %s, want %s", c.change.Previous, previous)
	}
}

func TestCompareTellsOfADeletedSourceWhatItSaidOfItself(t *testing.T) {
	now := objectOf(keyringOf(1), "u", 5, content{"a": "1"})
	now.ignore, now.match = true, true
	c := chain{t: t}
	c.see(now, false)
	if got, want := c.see(nil, false), "deleted u/5 {a} [] ignore match"; got != want {
		t.Errorf("event %s\n want %s", got, want)
	}
}

func TestCompareTellsThatASourceIsIgnoredNowButNotThatItNoLongerIs(t *testing.T) {
	ring := keyringOf(1)
	state := func(version int, a string, ignore bool) *object {
		now := objectOf(ring, "u", version, content{"a": a})
		now.ignore = ignore
		return now
	}
	c := chain{t: t}
	for _, step := range []struct {
		name string
		now  *object
		want string
	}{
		{"a change", state(5, "1", false), "observed u/5 {a} []"},
		{"a change", state(6, "2", false), "changed u/6@6 {a@6} [a] previous"},
		{"ignored, so that the change that waits is forgotten", state(7, "2", true), "observed u/7@6 {a@6} [] ignore"},
		{"written once more", state(8, "2", true), nothing},
		{"a change while it is ignored", state(9, "3", true), "changed u/9@9 {a@9} [a] previous ignore"},
		{"not ignored any more, so that this change stays forgotten", state(10, "3", false), nothing},
		{"ignored again", state(11, "3", true), nothing},
		{"by a watcher that lags behind", state(8, "2", false), nothing},
		{"the next change", state(12, "4", false), "changed u/12@12 {a@12} [a] previous"},
	} {
		if got := c.see(step.now, false); got != step.want {
			t.Errorf("%s: event %s\n want %s", step.name, got, step.want)
		}
	}
}

// onHold returns the state of a source that is on hold for the given reason.
func onHold(now *object, why string) *object {
	now.heed(map[string]string{events.AnnotationHold: why}, annotations.Default())
	return now
}

func TestAHoldOfASourceIsTold(t *testing.T) {
	ring := keyringOf(1)
	state := func(version int, a, why string) *object {
		return onHold(objectOf(ring, "u", version, content{"a": a}), why)
	}
	tests := []struct {
		name   string
		before []*object
		now    *object
		want   string
	}{
		{"with its first event", nil, state(5, "1", "migration"), "observed u/5 {a} [] hold: migration"},
		{"when it is set", []*object{state(5, "1", "")}, state(6, "1", "migration"), "observed u/6 {a} [] hold: migration"},
		{"after a change", []*object{state(5, "1", ""), state(6, "2", "")}, state(7, "2", "migration"), "observed u/7@6 {a@6} [] hold: migration"},
		{"with a change", []*object{state(5, "1", "")}, state(6, "2", "migration"), "changed u/6@6 {a@6} [a] previous hold: migration"},
		{"when it says something else", []*object{state(5, "1", "migration")}, state(6, "1", "long migration"), "observed u/6 {a} [] hold: long migration"},
		{"when it is taken off", []*object{state(5, "1", "migration"), state(6, "2", "migration")}, state(7, "2", ""), "observed u/7@6 {a@6} []"},
		{"but not again", []*object{state(5, "1", "migration")}, state(6, "1", "migration"), nothing},
		{"nor by spaces", []*object{state(5, "1", "migration")}, state(6, "1", " migration\n"), nothing},
		{"nor of a source that is gone", []*object{state(5, "1", "migration")}, nil, "deleted u/5 {a} []"},
		{"nor by a watcher that lags behind", []*object{state(7, "1", "migration")}, state(6, "1", ""), nothing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			for _, state := range tt.before {
				c.see(state, false)
			}
			if got := c.see(tt.now, false); got != tt.want {
				t.Errorf("event %s\n want %s", got, tt.want)
			}
		})
	}
}

func TestAHoldOfACertificateIsToldThoughOnlyGeneratedKeysDiffer(t *testing.T) {
	ring := keyringOf(1)
	generated := func(version int, store, why string) *object {
		now := onHold(objectOf(ring, "u", version, content{"tls.crt": "1", "keystore.jks": store}), why)
		now.derived = true
		return now
	}
	c := chain{t: t}
	c.see(generated(5, "1", ""), false)
	if got := c.see(generated(6, "2", ""), false); got != nothing {
		t.Fatalf("without a hold: %s", got)
	}
	if got, want := c.see(generated(7, "2", "migration"), false), "observed u/7 {keystore.jks tls.crt} [] hold: migration"; got != want {
		t.Errorf("event %s\n want %s", got, want)
	}
}
