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
	for _, test := range []struct {
		name  string
		quiet func(b *bed, name string)
	}{
		{"the operator does not get to them", func(b *bed, name string) { b.deaf[name] = true }},
		{"the operator cannot sync them", func(b *bed, name string) {
			b.failing[name] = true
			b.queue <- types.NamespacedName{Namespace: "aaa", Name: name}
		}},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.took = 10 * time.Millisecond
			for i := range many {
				name := fmt.Sprintf("many-%03d", i)
				b.secret("aaa/"+name, "shop/db", "")
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
					b.Errorf("%q were synced, want %q", b.synced, want)
				}
			})
		})
	}
}
