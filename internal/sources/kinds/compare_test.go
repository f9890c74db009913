package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

// told formats an event as one line: the verb, uid/resourceVersion and changedAt, of a status its fields, or the keys with their own changedAt (a
// removed one with a minus, one that does not count with why, one that counts again with since when) and those that the event is about, and whatever
// else is set.
func told(change events.Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s", change.Verb, change.UID, change.ResourceVersion)
	at := func(version string) string {
		if version == "" {
			return ""
		}
		return "@" + version
	}
	b.WriteString(at(change.ChangedAt))
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(change.Keys)) {
		k := change.Keys[name]
		if k.Fingerprint == "" {
			name = "-" + name
		}
		name += at(k.ChangedAt)
		if k.Ignored != "" {
			name += "!" + k.Ignored
		}
		if k.Since != "" {
			name += ">" + k.Since
		}
		keys = append(keys, name)
	}
	if s := change.Status; s != nil {
		fmt.Fprintf(&b, " %s of %s: %s", s.Revision, s.Secret, s.Reason)
	} else {
		fmt.Fprintf(&b, " {%s} %v", strings.Join(keys, " "), change.Changed)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{change.Status != nil && change.Status.Expiring, "expiring"},
		{change.Created, "created"},
		{change.Truncated, "truncated"},
		{change.Previous != "", "previous"},
		{change.Ignore, "ignore"},
		{change.Match, "match"},
		{change.Hold != "", "hold: " + change.Hold},
		{change.Problem != "", "problem: " + change.Problem},
	} {
		if flag.set {
			b.WriteString(" " + flag.name)
		}
	}
	return b.String()
}

const nothing = "nothing"

// chain compares the states of a source one after the other, each with the last event before it.
type chain struct {
	t      testing.TB
	before *LastEvent
	change events.Change
}

// see returns the event for a state, which is nil if the source is gone, and publishes it.
func (c *chain) see(now *Object, created bool) string {
	c.t.Helper()
	change, worthSaying := compare(c.before, now, created)
	if !worthSaying {
		return nothing
	}
	c.change, c.before = change, mustLast(c.t, change)
	return told(change)
}

func TestCompare(t *testing.T) {
	ring := keyringOf(1)
	one := func(uid string, version int) *Object {
		return objectOf(ring, uid, version, content{"a": "1", "b": "2"})
	}
	other := func(uid string, version int) *Object {
		return objectOf(ring, uid, version, content{"a": "1", "b": "3"})
	}
	for _, tt := range []struct {
		name    string
		before  []*Object // nil is gone
		now     *Object
		created bool
		want    string
	}{
		{
			name:   "an earlier state of the same object is nothing: the watcher lags behind another one",
			before: []*Object{one("u", 10)}, now: other("u", 9), want: nothing,
		},
		{
			name:   "an earlier state of an object that was deleted since is nothing",
			before: []*Object{one("u", 10), nil}, now: other("u", 9), want: nothing,
		},
		{
			name:   "other content in another object has changed, also at a lower resourceVersion of a cluster that replaced this one",
			before: []*Object{one("u", 10)}, now: other("v", 9), want: "changed v/9@9 {a b@9} [b] previous",
		},
		{
			name:   "nothing in another object has changed later than it was written, whatever the cluster that this one replaced has said",
			before: []*Object{one("u", 5), other("u", 9500), nil}, now: other("v", 12), want: "observed v/12 {a b} [] previous",
		},
		{
			name:   "the same content in another object that was created is observed",
			before: []*Object{one("u", 5)}, now: one("v", 6), created: true, want: "observed v/6 {a b} [] previous",
		},
		{
			name:   "an earlier object of the same content is nothing: the watcher lags behind another one",
			before: []*Object{one("v", 6)}, now: one("u", 5), created: true, want: nothing,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			for i, state := range tt.before {
				if got := c.see(state, false); got == nothing {
					t.Fatalf("state %d before is no event", i)
				}
			}
			if got := c.see(tt.now, tt.created); got != tt.want {
				t.Errorf("event %s\n want %s", got, tt.want)
			}
			if got := c.see(tt.now, false); got != nothing {
				t.Errorf("seen again it is %s", got)
			}
		})
	}
}

func TestASourceThatWasGoneHasAppearedWhereItsReturnWasSeen(t *testing.T) {
	ring := keyringOf(1)
	one := func(uid string, version int) *Object { return objectOf(ring, uid, version, content{"a": "1"}) }
	for _, tt := range []struct {
		name    string
		before  []*Object
		created bool
		want    string
	}{
		{"it was deleted, and is created", []*Object{one("u", 5), nil}, true, "9"},
		{"it was deleted, and is found again", []*Object{one("u", 5), nil}, false, "5"},
		{"nobody saw that it was gone", []*Object{one("u", 5)}, true, "5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			for i, state := range tt.before {
				c.see(state, i == 0)
			}
			if c.see(one("v", 9), tt.created) == nothing {
				t.Fatal("no event")
			}
			if c.change.CreatedAt != tt.want {
				t.Errorf("created at %s, want %s", c.change.CreatedAt, tt.want)
			}
			if c.change.ChangedAt != "5" {
				t.Errorf("changed at %s, want 5", c.change.ChangedAt)
			}
		})
	}
}

// Pods that need a key cannot have started before the source had it.
func TestAKeyThatTheSourceNeverHadIsAddedUntilItChanges(t *testing.T) {
	ring := keyringOf(1)
	for _, tt := range []struct {
		name   string
		states []content // nil is gone
		want   bool
	}{
		{"it comes", []content{{"a": "1"}, {"a": "1", "b": "1"}}, true},
		{"it comes into a source without keys", []content{{}, {"b": "1"}}, true},
		{"it is there from the beginning", []content{{"a": "1", "b": "1"}}, false},
		{"another key changes after it has come", []content{{"a": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "1"}}, true},
		{"it changes after it has come", []content{{"a": "1"}, {"a": "1", "b": "1"}, {"a": "1", "b": "2"}}, false},
		{"it was removed and comes back", []content{{"a": "1", "b": "1"}, {"a": "1"}, {"a": "1", "b": "2"}}, false},
		{"it comes with the source, which had it before it was deleted", []content{{"a": "1", "b": "1"}, nil, {"a": "1", "b": "2"}}, false},
		{"it comes, and then the source is deleted and made again", []content{{"a": "1"}, {"a": "1", "b": "1"}, nil, {"a": "1", "b": "1"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			for i, state := range tt.states {
				var now *Object
				if state != nil {
					now = objectOf(ring, "u", i+1, state)
				}
				c.see(now, i == 0)
			}
			if got := c.change.Keys["b"].Added; got != tt.want {
				t.Errorf("it is added: %t, want %t: %s", got, tt.want, told(c.change))
			}
			if c.change.Keys["a"].Added {
				t.Errorf("the key that was there from the beginning is added: %s", told(c.change))
			}
		})
	}
}

// Pods may have started with content that was replaced before it could be published.
func TestAKeyIsNotAddedIfTheSourceHadContentWithoutAnEvent(t *testing.T) {
	ring := keyringOf(1)
	before := mustLast(t, appeared(objectOf(ring, "u", 1, content{"a": "1"}), false))
	first, now := objectOf(ring, "u", 2, content{"a": "1"}), objectOf(ring, "u", 4, content{"a": "1", "b": "2"})
	for _, tt := range []struct {
		name  string
		state State
		of    *LastEvent
		want  bool
	}{
		{"it came with the only change", State{Now: now, Changes: 1}, before, true},
		{"there were two", State{Now: now, Changes: 2}, before, false},
		{"it came after the source", State{Now: now, First: first, Created: true, Changes: 2}, nil, true},
		{"and there were two changes after that", State{Now: now, First: first, Created: true, Changes: 3}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change, _ := assessContent(tt.of, tt.state)
			if got := change.Keys["b"]; got.Added != tt.want || got.ChangedAt != "4" {
				t.Errorf("the event says %+v, want that it is added: %t", got, tt.want)
			}
		})
	}
}

func TestCompareAfterAnEventThatCannotBeRead(t *testing.T) {
	unreadable := UnreadableEvent(7)
	now := objectOf(keyringOf(1), "u", 5, content{"a": "1"})
	if change, worthSaying := compare(unreadable, now, false); !worthSaying || told(change) != "observed u/5 {a} []" {
		t.Errorf("event %s (%t), want observed", told(change), worthSaying)
	}
	if change, worthSaying := compare(unreadable, nil, false); worthSaying {
		t.Errorf("event %s for a source that does not exist", told(change))
	}
}

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
}

func TestCompareTellsThatASourceIsIgnoredNowButNotThatItNoLongerIs(t *testing.T) {
	ring := keyringOf(1)
	state := func(version int, a string, ignore bool) *Object {
		now := objectOf(ring, "u", version, content{"a": a})
		now.ignore = ignore
		return now
	}
	c := chain{t: t}
	for _, step := range []struct {
		name string
		now  *Object
		want string
	}{
		{"a change", state(5, "1", false), "observed u/5 {a} []"},
		{"a change", state(6, "2", false), "changed u/6@6 {a@6} [a] previous"},
		{"ignored, so that the change that waits is forgotten", state(7, "2", true), "observed u/7@6 {a@6} [] ignore"},
		{"written once more", state(8, "2", true), nothing},
		{"by a watcher that lags behind", state(6, "1", false), nothing},
		{"not ignored any more", state(10, "2", false), nothing},
		{"the next change", state(12, "4", false), "changed u/12@12 {a@12} [a] previous"},
	} {
		if got := c.see(step.now, false); got != step.want {
			t.Errorf("%s: event %s\n want %s", step.name, got, step.want)
		}
	}
}

// onHold returns the state of a source that is on hold for the given reason.
func onHold(now *Object, why string) *Object {
	now.heed(map[string]string{events.AnnotationHold: why}, reloader.Default())
	return now
}

func TestAHoldOfASourceIsTold(t *testing.T) {
	ring := keyringOf(1)
	state := func(version int, a, why string) *Object {
		return onHold(objectOf(ring, "u", version, content{"a": a}), why)
	}
	for _, tt := range []struct {
		name   string
		before []*Object
		now    *Object
		want   string
	}{
		{"when it is set", []*Object{state(5, "1", "")}, state(6, "1", "migration"), "observed u/6 {a} [] hold: migration"},
		{"with a change", []*Object{state(5, "1", "")}, state(6, "2", "migration"), "changed u/6@6 {a@6} [a] previous hold: migration"},
		{"when it says something else", []*Object{state(5, "1", "migration")}, state(6, "1", "long migration"), "observed u/6 {a} [] hold: long migration"},
		{"when it is taken off", []*Object{state(5, "1", "migration"), state(6, "2", "migration")}, state(7, "2", ""), "observed u/7@6 {a@6} []"},
		{"nor by a watcher that lags behind", []*Object{state(7, "1", "migration")}, state(6, "1", ""), nothing},
	} {
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
	generated := func(version int, store, why string) *Object {
		return onHold(kept(t, issued, version, content{"tls.crt": "1", "keystore.jks": store}), why)
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

func TestCompareForgetsTheKeysThatWentFirst(t *testing.T) {
	ring := keyringOf(1)
	c := chain{t: t}
	version := 95 // so that the resourceVersions get longer on the way
	c.see(objectOf(ring, "u", version, content{"stays": "1", "day-000": "x"}), false)
	for day := range maxGone + 10 {
		version++
		c.see(objectOf(ring, "u", version, content{"stays": "1", fmt.Sprintf("day-%03d", day+1): "x"}), false)
	}
	var gone, want []string
	for name, k := range c.change.Keys {
		if k.Fingerprint == "" {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	// The event that removes a key always says so.
	for day := 9; day <= maxGone+9; day++ {
		want = append(want, fmt.Sprintf("day-%03d", day))
	}
	testkit.WantEqual(t, "removed keys that are remembered", want, gone)
	if k := c.change.Keys["stays"]; k.ChangedAt != "" {
		t.Errorf("a key that never changed has changed at %s", k.ChangedAt)
	}
}

func TestAnObjectThatWasChangedBeforeItsFirstEventIsChanged(t *testing.T) {
	ring := keyringOf(1)
	first := objectOf(ring, "u", 1, content{"a": "one", "b": "one"})
	for _, tt := range []struct {
		name   string
		now    *Object
		before *LastEvent
		want   string
	}{
		{"as it was created", first, nil, "changed u/1@1 {a b} [a b] created"},
		{"changed since", objectOf(ring, "u", 2, content{"a": "two", "b": "one"}), nil, "changed u/2@2 {a@2 b} [a] previous"},
		{"made anew since", objectOf(ring, "v", 2, content{"a": "two", "b": "one"}), nil, "changed v/2@2 {a b} [a b] created"},
		{
			"published before", objectOf(ring, "u", 3, content{"a": "three", "b": "one"}), mustLast(t, appeared(first, true)),
			"changed u/3@3 {a@3 b} [a] previous",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change, _ := assessContent(tt.before, State{Now: tt.now, First: first, Created: true})
			if got := told(change); got != tt.want {
				t.Errorf("event %s\n want %s", got, tt.want)
			}
			if !change.Created && change.CreatedAt != "1" {
				t.Errorf("created at %q, want that of the creation", change.CreatedAt)
			}
		})
	}
}

func TestASourceIsRecentOnlyIfTheStreamHasNoEventOfIt(t *testing.T) {
	now := objectOf(keyringOf(1), "u", 5, nil)
	for want, before := range map[string]*LastEvent{"": UnreadableEvent(7), "5": nil} {
		if change, _ := assessContent(before, State{Now: now, Recent: true}); change.CreatedAt != want {
			t.Errorf("created at %q after %+v, want %q", change.CreatedAt, before, want)
		}
	}
}
