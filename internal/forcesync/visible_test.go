package forcesync

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

func TestReadersOfWhatDidNotChangeAreSyncedOnceTheVersionIsVisible(t *testing.T) {
	const many = 100
	const meanwhile = int(serverLag/syncTime) + 2*maxSyncs // those until all servers return the version, and those with slots before and then
	tests := []struct {
		name    string
		changes int // the reader whose property changed
		least   int // how many patches there are
		most    int
	}{
		{name: "those after the first that changes are", changes: 0, least: many, most: many + meanwhile},
		{name: "those before it are repeated", changes: 30, least: many + 30, most: many + 30 + meanwhile},
		{name: "all are repeated while none changes", changes: many, least: many * (1 + maxRepeats), most: many * (1 + maxRepeats)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				for i := range many {
					b.secret(fmt.Sprintf("db-%03d", i), "shop/db", "")
				}
				changed := fmt.Sprintf("db-%03d", test.changes)
				b.read = func(name types.NamespacedName) string {
					if name.Name == changed {
						return "2"
					}
					return "1"
				}
				b.start(b.host())
				event := b.rotate("shop/db", 2, nil)
				b.pass(5 * time.Minute)
				b.mustSettle(event)
				if patches := len(b.taken()); patches < test.least || patches > test.most {
					t.Errorf("%d patches, want at least %d and at most %d", patches, test.least, test.most)
				}
				if outcomes := b.outcomes(); len(outcomes) != many {
					t.Errorf("%d outcomes, want %d", len(outcomes), many)
				}
			})
		})
	}
}

func TestReadersThatReadBeforeTheVersionWasVisibleReadItInTheEnd(t *testing.T) {
	inBed(t, func(b *bed) {
		for i := range 20 {
			b.secret(fmt.Sprintf("db-%03d", i), "shop/db", "")
		}
		lagging := 10
		b.read = func(types.NamespacedName) string {
			if lagging--; lagging >= 0 {
				return "1"
			}
			return "2"
		}
		b.start(b.host())
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Minute)
		b.mustSettle(event)
		for name, content := range b.written {
			if content != "2" {
				t.Errorf("%s has the content %q", name.Name, content)
			}
		}
	})
}

// A change that may come from something else does not show that a server of the store has the version.
func TestWhatDoesNotShowTheVersionSparesNoRepeat(t *testing.T) {
	tests := []struct {
		name   string
		first  string // spec of the reader that changes with each sync
		mutate func(*events.Change)
		before func(*bed)
	}{
		{
			name: "a reader of a role, which may read its remaining time to live", first: readsRole,
			mutate: func(c *events.Change) {
				c.Source, c.Store.Engine, c.Store.Version, c.Store.Operation = roleSource, events.EngineDatabase, 0, ""
			},
		},
		{
			name: "a reader that is synced for another path too", first: ", dataFrom: [{extract: {key: shop/mail}}]",
			before: func(b *bed) { b.deliver(b.Context(), rotation("shop/mail", 2, nil)) },
		},
		{
			name: "a reader that was asked to read an earlier version", first: "",
			before: func(b *bed) { b.deliver(b.Context(), rotation("shop/db", 1, nil)) },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("a", "shop/db", test.first)
				const many = 3 * maxSyncs
				for i := range many {
					b.secret(fmt.Sprintf("db-%03d", i), "shop/db", readsRole)
				}
				syncs := 0
				b.read = func(name types.NamespacedName) string {
					if name.Name != "a" {
						return "1"
					}
					syncs++
					return fmt.Sprint(syncs)
				}
				b.start(b.host())
				if test.before != nil {
					test.before(b)
					b.pass(time.Millisecond)
				}
				event := b.rotate("shop/db", 2, test.mutate)
				b.pass(5 * time.Minute)
				b.mustSettle(event)
				if patches := len(b.taken()); patches < many*(1+maxRepeats) {
					t.Errorf("%d patches, want %d or more", patches, many*(1+maxRepeats))
				}
			})
		})
	}
}

func TestAReaderWhoseChangeIsSeenLateIsNotPatchedAgain(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		for i := range maxSyncs {
			name := fmt.Sprintf("slow-%d", i)
			b.secret(name, "shop/mail", "")
			b.deaf[name] = true
		}
		b.read = func(types.NamespacedName) string { return "1" }
		b.start(b.host())
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		b.rotate("shop/mail", 2, nil)
		b.pass(changeWait)
		// The repeat waits for a slot, and what the first sync wrote is seen only now.
		b.deliver(b.Context(), events.Change{
			Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbChanged, UID: "s", ResourceVersion: "1", ChangedAt: "1",
		})
		b.pass(slotTime)
		b.mustSettle(event)
		if patches := b.taken(); len(patches) != 1+maxSyncs {
			t.Errorf("patches: %q, want one for each ExternalSecret", patches)
		}
		if outcomes := b.outcomes(); len(outcomes) != 1 || outcomes[0] != "db completed synced" {
			t.Errorf("outcomes: %q", outcomes)
		}
	})
}
