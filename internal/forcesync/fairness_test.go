package forcesync

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestARotationThatManyReadHoldsUpAnotherByAFewSyncsOnly(t *testing.T) {
	const many = 500
	inBed(t, func(b *bed) {
		for i := range many {
			b.secret(fmt.Sprintf("many-%03d", i), "shop/db", "")
		}
		b.secret("single", "shop/mail", "")
		b.start(b.host())
		large := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		before := 0
		b.with(func() {
			before = len(b.synced)
			b.read = func(name types.NamespacedName) string {
				if name.Name == "single" {
					return "shop/mail2"
				}
				return "shop/db2"
			}
		})
		single := b.rotate("shop/mail", 2, nil)
		b.pass(2 * time.Second)
		b.mustSettle(single)
		limit := maxSyncs
		b.with(func() {
			// The ones already patched, the one whose turn it was, and one that was synced while the event arrived.
			if at := slices.Index(b.synced, "single") - before; at < 0 || at > limit+2 {
				t.Errorf("%d others were synced before it, want %d at most", at, limit+2)
			}
		})
		b.pass(time.Minute)
		b.mustSettle(large)
		b.with(func() {
			if len(b.synced) != many+1 || b.most > limit {
				t.Errorf("%d were synced, want %d; %d were asked at a time, want %d at most", len(b.synced), many+1, b.most, limit)
			}
		})
	})
}

func TestTheRotationsTakeTurns(t *testing.T) {
	push := func(q *turns, path string, names ...string) {
		for _, name := range names {
			q.push(&pendingSync{key: key{source: rotation(path, 1, nil).Source, secret: types.NamespacedName{Name: name}}})
		}
	}
	q := newTurns()
	push(&q, "a", "a1", "a2", "a3", "a4")
	push(&q, "b", "b1")
	push(&q, "c", "c1", "c2")
	var got []string
	for range 3 {
		got = append(got, q.pop().key.secret.Name)
	}
	push(&q, "b", "b2")
	for s := q.pop(); s != nil; s = q.pop() {
		got = append(got, s.key.secret.Name)
	}
	if want := []string{"a1", "b1", "c1", "a2", "c2", "b2", "a3", "a4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(q.waiting) != 0 {
		t.Errorf("something is left: %v", q.waiting)
	}
}
