package kinds

import (
	"fmt"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAnObjectIsTheSameBesideTheEventThatShowsIt(t *testing.T) {
	many := content{}
	for i := range events.MaxKeys + 1 {
		many[fmt.Sprintf("key-%03d", i)] = "1"
	}
	two := content{"b": "2", "a": "1"}
	// shown returns the last event once each of the states was seen.
	shown := func(states ...*Object) (last *LastEvent) {
		for _, seen := range states {
			if change, ok := compare(last, seen, false); ok {
				last = mustLast(t, change)
			}
		}
		return last
	}
	one := objectOf(keyringOf(1), "u", 5, two)
	secret := secretOf(testSource.Name, "u", "5", "one")
	secret.Annotations = map[string]string{annotationIgnore: "true", annotationIgnoreKeys: "other"}
	annotated := heededOf(t, secretKind{}, keyringOf(1), reloader.Annotations{}, secret)
	for _, tt := range []struct {
		name    string
		now     *Object
		last    *LastEvent
		settled bool
	}{
		{"which it usually is", one, shown(one), true},
		{"with keys that were removed", one, shown(objectOf(keyringOf(1), "u", 4, content{"c": "3"}), one), true},
		{"without keys", objectOf(keyringOf(1), "u", 5, nil), shown(objectOf(keyringOf(1), "u", 5, nil)), true},
		{"with metadata that was written since", objectOf(keyringOf(1), "u", 6, two), shown(one), true},
		{"with annotations", annotated, shown(annotated), true},
		{"that deleted it before", one, shown(one, nil), true},
		{"under the current key of two", objectOf(keyringOf(2, 1), "u", 5, two), shown(objectOf(keyringOf(2), "u", 5, two)), true},
		{"under the earlier key of two", objectOf(keyringOf(2, 1), "u", 5, two), shown(one), true},
		{"under a key that is gone", objectOf(keyringOf(2), "u", 5, two), shown(one), false},
		{"that there is not yet", one, nil, false},
		{"that cannot be read", one, UnreadableEvent(7), false},
		{"of other content", objectOf(keyringOf(1), "u", 6, content{"a": "2", "b": "2"}), shown(one), false},
		{"of another object", objectOf(keyringOf(1), "v", 5, two), shown(one), false},
		{"with more keys than it lists", objectOf(keyringOf(1), "u", 5, many), shown(objectOf(keyringOf(1), "u", 5, many)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cached := func() (Cache, *Store) {
				cached := cacheOf(tt.now)
				cached.Settle(tt.now.Source, tt.last)
				return cached, cached[tt.now.Source.Kind][0]
			}
			_, seen := cached()
			_, relisted := cached()
			relisted.Replace([]*Object{tt.now})
			others, beside := cached()
			for _, next := range []*LastEvent{UnreadableEvent(8), nil, shown(objectOf(keyringOf(1), "w", 9, content{"d": "4"}))} {
				others.Settle(tt.now.Source, next)
			}
			for name, store := range map[string]*Store{"seen": seen, "listed again": relisted, "beside a later event": beside} {
				if _, is := store.objects[tt.now.Source.Namespace][tt.now.Source.Name].(*settled); is != tt.settled {
					t.Errorf("%s: the event has its content: %t, want %t", name, is, tt.settled)
				}
				testkit.WantEqual(t, name, tt.now, store.Get(tt.now.Source), everyField)
				testkit.WantEqual(t, name+", listed", []*Object{tt.now}, []*Object{store.Get(store.Sources()[0])}, everyField)
				testkit.WantEqual(t, name+", in its namespace", []*Object{tt.now}, store.in(tt.now.Source.Namespace), everyField)
				testkit.WantEqual(t, name+", put again", tt.now, store.Put(one), everyField)
			}
		})
	}
}

func TestASettledObjectRefersToTheLatestEventThatShowsIt(t *testing.T) {
	one := objectOf(keyringOf(1), "u", 5, content{"a": "1"})
	change, _ := compare(nil, one, false)
	earlier, later := mustLast(t, change), mustLast(t, change)
	cached := cacheOf(one)
	for _, last := range []*LastEvent{earlier, later, UnreadableEvent(8)} {
		cached.Settle(one.Source, last)
	}
	if got := cached[one.Source.Kind][0].objects[one.Source.Namespace][one.Source.Name].(*settled).shown; got != later {
		t.Errorf("it refers to %p, want %p", got, later)
	}
}
