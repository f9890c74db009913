package sources

import "testing"

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
