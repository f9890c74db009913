package forcesync

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyDenialsOfOneChangeCountTowardsGivingUp(t *testing.T) {
	inBed(t, func(b *bed) {
		refuse := func(err error) { b.with(func() { b.refuse = err }) }
		denial := apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("denied by a webhook"))
		b.secret("db", "shop/db", "")
		b.start(b.host())
		refuse(apierrors.NewTimeoutError("etcdserver: request timed out", 1))
		first := b.rotate("shop/db", 2, nil)
		b.pass(10 * time.Minute) // the delay between two tries is a minute by now
		refuse(denial)
		b.pass(4 * time.Minute)
		if done, err := b.isSettled(first); done {
			t.Errorf("it was given up after 4 denials: %v", err)
		}
		second := b.rotate("shop/db", 3, nil)
		b.pass(4 * time.Minute)
		if done, err := b.isSettled(second); done {
			t.Errorf("the denials of an earlier change count: %v", err)
		}
		refuse(nil)
		b.pass(5 * time.Minute)
		b.mustSettle(first)
		b.mustSettle(second)
	})
}

func TestALaterVersionDoesNotShortenTheDelayAfterAFailure(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.start(b.host())
		b.with(func() { b.refuse = apierrors.NewTimeoutError("etcdserver: request timed out", 1) })
		b.rotate("shop/db", 2, nil)
		b.pass(17 * time.Second) // the delays are 1, 2, 4 and 8 s and up to a tenth more: the sixth try comes after 31 s at the earliest
		b.with(func() { b.refuse = nil })
		later := b.rotate("shop/db", 3, nil)
		b.pass(10 * time.Second)
		b.want("patches", b.taken(), nil)
		b.pass(time.Minute)
		b.mustSettle(later)
		b.want("patches", b.taken(), []string{"db main/root/secret/shop/db/3"})
	})
}
