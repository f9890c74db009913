package sources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// told formats an event as one line: the verb, uid/resourceVersion and changedAt, the keys with their own
// changedAt (a removed one with a minus), the keys that the event is about, and whatever else is set.
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
		keys = append(keys, name+at(k.ChangedAt))
	}
	fmt.Fprintf(&b, " {%s} %v", strings.Join(keys, " "), change.Changed)
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{change.Created, "created"},
		{change.Truncated, "truncated"},
		{change.Previous != "", "previous"},
		{change.Ignore, "ignore"},
		{change.Match, "match"},
		{change.Hold != "", "hold: " + change.Hold},
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
	before *lastEvent
	change events.Change
}

// see returns the event for a state, which is nil if the source is gone, and publishes it.
func (c *chain) see(now *object, created bool) string {
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
	one := func(uid string, version int) *object {
		return objectOf(ring, uid, version, content{"a": "1", "b": "2"})
	}
	other := func(uid string, version int) *object {
		return objectOf(ring, uid, version, content{"a": "1", "b": "3"})
	}
	for _, tt := range []struct {
		name    string
		before  []*object // nil is gone
		now     *object
		created bool
		want    string
	}{
		{
			name: "a source that the stream does not know is observed",
			now:  one("u", 5), want: "observed u/5 {a b} []",
		},
		{
			name: "a source that was created while the watcher ran has changed, in all keys",
			now:  one("u", 5), created: true, want: "changed u/5@5 {a b} [a b] created",
		},
		{
			name: "an empty source that was created has changed without a key",
			now:  objectOf(ring, "u", 5, nil), created: true, want: "changed u/5@5 {} [] created",
		},
		{
			name:   "an earlier state of the same object is nothing: the watcher lags behind another one",
			before: []*object{one("u", 10)}, now: other("u", 9), want: nothing,
		},
		{
			name:   "an earlier state of an object that was deleted since is nothing",
			before: []*object{one("u", 10), nil}, now: other("u", 9), want: nothing,
		},
		{
			name:   "other content in another object has changed, also at a lower resourceVersion of a cluster that replaced this one",
			before: []*object{one("u", 10)}, now: other("v", 9), want: "changed v/9@9 {a b@9} [b] previous",
		},
		{
			name:   "nothing in another object has changed later than it was written, whatever the cluster that this one replaced has said",
			before: []*object{one("u", 5), other("u", 9500), nil}, now: other("v", 12), want: "observed v/12 {a b} [] previous",
		},
		{
			name:   "so what changes in it is newer",
			before: []*object{one("u", 5), other("u", 9500), nil, other("v", 12)}, now: objectOf(ring, "v", 20, content{"a": "0", "b": "3"}),
			want: "changed v/20@20 {a@20 b} [a] previous",
		},
		{
			name:   "also in an object that was there before its cluster was watched",
			before: []*object{one("u", 5), other("u", 9500)}, now: objectOf(ring, "v", 12, content{"a": "0", "b": "3"}),
			want: "changed v/12@12 {a@12 b} [a] previous",
		},
		{
			name:   "the same content in another object is nothing where nobody has seen that it was created",
			before: []*object{one("u", 5)}, now: one("v", 6), want: nothing,
		},
		{
			name:   "the same content in another object that was created is observed",
			before: []*object{one("u", 5)}, now: one("v", 6), created: true, want: "observed v/6 {a b} [] previous",
		},
		{
			name:   "an earlier object of the same content is nothing: the watcher lags behind another one",
			before: []*object{one("v", 6)}, now: one("u", 5), created: true, want: nothing,
		},
		{
			name:   "the same object is not observed again because its last event was tried twice",
			before: []*object{one("u", 5)}, now: one("u", 5), created: true, want: nothing,
		},
		{
			name:   "other content in another object, whose predecessor's end nobody saw, has changed",
			before: []*object{one("u", 5)}, now: other("v", 6), created: true, want: "changed v/6@6 {a b@6} [b] previous",
		},
		{
			name:   "a key that was added has changed",
			before: []*object{one("u", 5)}, now: objectOf(ring, "u", 6, content{"a": "1", "b": "2", "c": ""}),
			want: "changed u/6@6 {a b c@6} [c] previous",
		},
		{
			name:   "a key that was removed has changed, and is remembered",
			before: []*object{one("u", 5)}, now: objectOf(ring, "u", 6, content{"b": "2"}),
			want: "changed u/6@6 {-a@6 b} [a] previous",
		},
		{
			name:   "what changed earlier is carried on when it is deleted, also what was removed",
			before: []*object{one("u", 5), objectOf(ring, "u", 6, content{"b": "3"})}, now: nil,
			want: "deleted u/6@6 {-a@6 b@6} []",
		},
		{
			name:   "a source that was deleted and is there with the same content is observed: it has not changed",
			before: []*object{one("u", 5), other("u", 6), nil}, now: other("v", 9), created: true,
			want: "observed v/9@6 {a b@6} [] previous",
		},
		{
			name:   "a source that was deleted and is there with other content has changed",
			before: []*object{one("u", 5), nil}, now: other("v", 9), created: true,
			want: "changed v/9@9 {a b@9} [b] created previous",
		},
		{
			name:   "it does not matter whether its return was seen",
			before: []*object{one("u", 5), nil}, now: other("v", 9),
			want: "changed v/9@9 {a b@9} [b] created previous",
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
	one := func(uid string, version int) *object { return objectOf(ring, uid, version, content{"a": "1"}) }
	for _, tt := range []struct {
		name    string
		before  []*object
		created bool
		want    string
	}{
		{"it was deleted, and is created", []*object{one("u", 5), nil}, true, "9"},
		{"it was deleted, and is found again", []*object{one("u", 5), nil}, false, "5"},
		{"nobody saw that it was gone", []*object{one("u", 5)}, true, "5"},
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
	t.Run("so has one that is created with other content", func(t *testing.T) {
		for created, want := range map[bool]string{true: "9", false: "5"} {
			c := chain{t: t}
			c.see(one("u", 5), true)
			c.see(nil, false)
			c.see(objectOf(ring, "v", 9, content{"a": "2"}), created)
			if c.change.CreatedAt != want || !c.change.Created {
				t.Errorf("seen to be created %t: created at %s, want %s", created, c.change.CreatedAt, want)
			}
		}
	})
	t.Run("when the earlier one was created says nothing any more", func(t *testing.T) {
		c := chain{t: t}
		c.see(one("u", 5), false)
		c.change.CreatedAt, c.change.Since = "5", time.Unix(1, 0).UTC()
		c.before = mustLast(t, c.change)
		c.see(nil, false)
		c.see(one("v", 9), true)
		if c.change.CreatedAt != "9" || !c.change.Since.IsZero() {
			t.Errorf("created at %s, since %s", c.change.CreatedAt, c.change.Since)
		}
	})
}

func TestCompareAfterAnEventThatCannotBeRead(t *testing.T) {
	unreadable := unreadableEvent(7)
	now := objectOf(keyringOf(1), "u", 5, content{"a": "1"})
	if change, worthSaying := compare(unreadable, now, false); !worthSaying || told(change) != "observed u/5 {a} []" {
		t.Errorf("event %s (%t), want observed", told(change), worthSaying)
	}
	if change, worthSaying := compare(unreadable, nil, false); worthSaying {
		t.Errorf("event %s for a source that does not exist", told(change))
	}
}

func TestCompareWhenTheKeyRingChanges(t *testing.T) {
	data, other := content{"a": "1", "b": "2"}, content{"a": "1", "b": "3"}
	for _, tt := range []struct {
		name string
		now  *object
		want string
		// id is the ID of the key with which the event's fingerprints are made.
		id string
	}{
		{
			name: "content that changes then is published under the new key, with only the changed keys",
			now:  objectOf(keyringOf(2, 1), "u", 9, other), want: "changed u/9@9 {a b@9} [b] previous",
			id: keyringOf(2).keys[0].id,
		},
		{
			name: "a key that is taken away too early has everything change in an object that was written since",
			now:  objectOf(keyringOf(2), "u", 9, data), want: "changed u/9@9 {a@9 b@9} [a b] previous",
			id: keyringOf(2).keys[0].id,
		},
		{
			name: "another object at the same resourceVersion, as after a restore, may have changed entirely",
			now:  objectOf(keyringOf(2), "v", 5, data), want: "changed v/5@5 {a@5 b@5} [a b] previous",
			id: keyringOf(2).keys[0].id,
		},
		{
			name: "a key that was removed from the object meanwhile is known to be gone",
			now:  objectOf(keyringOf(2), "u", 9, content{"a": "1"}), want: "changed u/9@9 {a@9 -b@9} [a b] previous",
			id: keyringOf(2).keys[0].id,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			c.see(objectOf(keyringOf(1), "u", 5, data), false)
			if got := c.see(tt.now, false); got != tt.want {
				t.Errorf("event %s\n want %s", got, tt.want)
			}
			for _, text := range []string{c.change.Fingerprint, c.change.Keys["a"].Fingerprint} {
				if !strings.HasPrefix(text, "k"+tt.id+":") {
					t.Errorf("the fingerprint %s is not under the key %s", text, tt.id)
				}
			}
		})
	}
}
