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
		b.start()
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
				b.start()
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

func TestAStormReachesTheOthersDespiteExternalSecretsThatCannotBeSynced(t *testing.T) {
	fails := func(b *bed, name string) { b.with(func() { b.failing[name] = true }) }
	without := storm(t, false, nil)
	for name, breaks := range map[string]func(b *bed, name string){
		"they begin to fail": fails,
		"they have failed before, so that no failure is seen": func(b *bed, name string) {
			fails(b, name)
			b.queue <- types.NamespacedName{Namespace: "shop", Name: name}
		},
		"they were never synced":    (*bed).fail,
		"the operator ignores them": func(b *bed, name string) { b.with(func() { b.deaf[name] = true }) },
	} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, first: %t", name, first), func(t *testing.T) {
				if with := storm(t, first, breaks); with > 2*without {
					t.Errorf("it takes %s, and without them %s", with, without)
				}
			})
		}
	}
}

// How slow it is shows with its first sync, so some more are asked before that.
func TestASlowOperatorIsAskedForFewAtATime(t *testing.T) {
	inBed(t, func(b *bed) {
		const many, most = 60, 4 * ownSyncs
		b.took = 2 * minSlotTime
		for i := range many {
			b.secret(fmt.Sprintf("db-%02d", i), "shop/db", "")
		}
		b.start()
		b.rotate("shop/db", 2, nil)
		b.pass(many*b.took + time.Minute)
		b.with(func() {
			if len(b.synced) != many || b.most > most {
				t.Errorf("%d were synced, want %d; %d were asked at a time, want %d at most", len(b.synced), many, b.most, most)
			}
		})
	})
}

// storm has 500 paths rotated, and returns how long it takes until all ExternalSecrets are synced that can be: 180, each of which reads one of the
// paths. If breaks is not nil, there are 20 more, which it makes the operator not sync. They are asked first, or each before nine others.
func storm(t *testing.T, first bool, breaks func(b *bed, name string)) (took time.Duration) {
	t.Helper()
	const paths, secrets, broken = 500, 200, 20
	pathOf := func(i int) string { return fmt.Sprintf("shop/%03d", i) }
	inBed(t, func(b *bed) {
		b.read = func(types.NamespacedName) string { return "2" }
		for i := range secrets {
			name, isBroken := fmt.Sprintf("es-%03d", i), i%(secrets/broken) == 0
			if first {
				isBroken = i < broken
			}
			if isBroken && breaks == nil {
				continue
			}
			b.secret(name, pathOf(i), "")
			if isBroken {
				breaks(b, name)
			}
		}
		b.start()
		b.pass(time.Minute)
		began, synced := time.Now(), 0
		b.ask(func() {
			for i := range paths {
				b.take(b.event(rotation(pathOf(i), 2, nil)))
			}
		})
		for synced < secrets-broken && time.Since(began) < time.Hour {
			b.pass(100 * time.Millisecond)
			b.with(func() { synced = len(b.synced) })
		}
		took = time.Since(began)
	})
	return took
}
