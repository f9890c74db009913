package forcesync

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
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
		limit := ownSyncs
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

// A tenant needs no right in the store to name its paths, and can make the operator ignore what it creates.
func TestATenantWhoseSyncsNeverEndHoldsNoOther(t *testing.T) {
	const many = 500
	tests := []struct {
		name  string
		quiet func(b *bed, name string)
	}{
		{"the operator does not get to them", func(b *bed, name string) { b.deaf[name] = true }},
		{"the operator cannot sync them", func(b *bed, name string) {
			b.failing[name] = true
			b.queue <- types.NamespacedName{Namespace: "aaa", Name: name}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.took = 10 * time.Millisecond
				for i := range many {
					name := fmt.Sprintf("many-%03d", i)
					b.secretIn("aaa", name, "shop/db", "")
					test.quiet(b, name)
				}
				b.secret("db", "shop/db", "")
				b.secret("mail", "shop/mail", "")
				b.start(b.host())
				b.pass(time.Minute)
				b.rotate("shop/db", 2, nil)
				b.pass(time.Second)
				other := b.rotate("shop/mail", 2, nil)
				b.pass(time.Second)
				b.mustSettle(other)
				b.with(func() {
					if want := []string{"db", "mail"}; !slices.Equal(b.synced, want) {
						t.Errorf("%q were synced, want %q", b.synced, want)
					}
				})
			})
		})
	}
}

func TestTheRotationsAndTheNamespacesOfEachTakeTurns(t *testing.T) {
	push := func(q *turns, path string, names ...string) {
		for _, name := range names {
			namespace, _, _ := strings.Cut(name, "/")
			q.push(&pendingSync{key: key{rotation(path, 1, nil).Source, types.NamespacedName{Namespace: namespace, Name: name}}})
		}
	}
	free := func(string) bool { return true }
	tests := []struct {
		name string
		// push is called first, and again is called after three syncs were taken.
		push, again func(q *turns)
		may         func(namespace string) bool
		want        []string
	}{
		{
			name: "the rotations",
			push: func(q *turns) {
				push(q, "a", "shop/a1", "shop/a2", "shop/a3", "shop/a4")
				push(q, "b", "shop/b1")
				push(q, "c", "shop/c1", "shop/c2")
			},
			again: func(q *turns) { push(q, "b", "shop/b2") },
			may:   free,
			want:  []string{"shop/a1", "shop/b1", "shop/c1", "shop/a2", "shop/c2", "shop/b2", "shop/a3", "shop/a4"},
		},
		{
			name:  "the namespaces of one",
			push:  func(q *turns) { push(q, "a", "aaa/1", "aaa/2", "aaa/3", "aaa/4", "shop/1", "shop/2", "crm/1") },
			again: func(q *turns) { push(q, "a", "crm/2") },
			may:   free,
			want:  []string{"aaa/1", "shop/1", "crm/1", "aaa/2", "shop/2", "crm/2", "aaa/3", "aaa/4"},
		},
		{
			name: "but not one that may not",
			push: func(q *turns) {
				push(q, "a", "aaa/a1", "shop/a1", "aaa/a2", "shop/a2")
				push(q, "b", "aaa/b1")
				push(q, "c", "aaa/c1", "crm/c1")
			},
			again: func(*turns) {},
			may:   func(namespace string) bool { return namespace != "aaa" },
			want:  []string{"shop/a1", "crm/c1", "shop/a2"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := newTurns()
			test.push(&q)
			var got []string
			for range 3 {
				got = append(got, q.pop(test.may).key.secret.Name)
			}
			test.again(&q)
			for s := q.pop(test.may); s != nil; s = q.pop(test.may) {
				got = append(got, s.key.secret.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for s := q.pop(free); s != nil; s = q.pop(free) {
				if test.may(s.key.secret.Namespace) {
					t.Errorf("%s was left", s.key.secret.Name)
				}
			}
			if q.size() != 0 {
				t.Errorf("something is left: %+v", q)
			}
		})
	}
}

func TestTheSyncsOfOneOwnerLeaveTheQueueTogether(t *testing.T) {
	q := newTurns()
	source := rotation("a", 1, nil).Source
	for _, name := range []string{"aaa/1", "aaa/owned", "crm/owned", "shop/1", "shop/owned"} {
		namespace, short, _ := strings.Cut(name, "/")
		s := &pendingSync{key: key{source, types.NamespacedName{Namespace: namespace, Name: name}}, seen: &externalsecret.ExternalSecret{}}
		if short == "owned" {
			s.seen.Owner = "all"
		}
		q.push(s)
	}
	names := func(syncs []*pendingSync) (names []string) {
		for _, s := range syncs {
			names = append(names, s.key.secret.Name)
		}
		return names
	}
	if got, want := names(q.popOwned(source, "all")), []string{"aaa/owned", "crm/owned", "shop/owned"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := names(q.popOwned(source, "all")); got != nil {
		t.Errorf("got %q again", got)
	}
	if got, want := names(q.popOwned(source, "")), []string{"aaa/1", "shop/1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if q.size() != 0 {
		t.Errorf("something is left: %+v", q)
	}
}
