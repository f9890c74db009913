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
				b.start()
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

// A change that may come from something else does not show that a server of the store has the version.
func TestWhatDoesNotShowTheVersionSparesNoRepeat(t *testing.T) {
	tests := []struct {
		name   string
		first  string // spec of the reader that changes with each sync
		before func(*bed)
	}{
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
				b.start()
				test.before(b)
				b.pass(time.Millisecond)
				event := b.rotate("shop/db", 2, nil)
				b.pass(5 * time.Minute)
				b.mustSettle(event)
				if patches := len(b.taken()); patches < many*(1+maxRepeats) {
					t.Errorf("%d patches, want %d or more", patches, many*(1+maxRepeats))
				}
			})
		})
	}
}

// The script of a rotation writes two paths, and a standby that has only the first one yet answers.
func TestAChangeByOnePathIsNotTakenForThatOfAnother(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/user", ", dataFrom: [{extract: {key: shop/password}}]")
		answers := []string{"user 2, password 1", "user 2, password 1"}
		b.read = func(types.NamespacedName) string {
			if len(answers) == 0 {
				return "user 2, password 2"
			}
			answer := answers[0]
			answers = answers[1:]
			return answer
		}
		b.start()
		first := b.rotate("shop/user", 2, nil)
		b.pass(time.Millisecond)
		second := b.rotate("shop/password", 2, nil)
		b.pass(time.Minute)
		b.mustSettle(first)
		b.mustSettle(second)
		b.want("patches", b.taken(), []string{
			"db main/root/secret/shop/password/2", "db main/root/secret/shop/password/2-r1", "db main/root/secret/shop/user/2",
		})
		b.want("outcomes", b.outcomes(), []string{"db completed synced", "db completed synced"})
		if got := b.written[types.NamespacedName{Namespace: "shop", Name: "db"}]; got != "user 2, password 2" {
			t.Errorf("%s was written", got)
		}
	})
}

func TestAHoldOfWhatIsWrittenIsNoChangeOfIt(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.read = func(types.NamespacedName) string { return "1" }
		b.start()
		b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		b.deliver(b.Context(), events.Change{
			Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbObserved, UID: "s", ResourceVersion: "1", ChangedAt: "1",
		})
		b.pass(time.Minute)
		b.want("outcomes", b.outcomes(), []string{"db skipped no-change"})
	})
}
