package forcesync

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// maxRetryDelay is longer than the longest delay of kube.PatchBackoff.
const maxRetryDelay = 70 * time.Second

func TestAnActuatorThatTakesOverGoesOnFromThere(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*bed)
		before  time.Duration // how long the first actuator runs
		again   []string      // what the next one patches
	}{
		{name: "where all is done", before: time.Second},
		{name: "where it was asked, and is not synced yet", before: 50 * time.Millisecond},
		{
			name:    "where it was not even asked",
			prepare: func(b *bed) { b.refuse = apierrors.NewTimeoutError("later", 1) },
			before:  50 * time.Millisecond, again: []string{"db " + secondVersion},
		},
		{
			name:    "where it was asked again, and is not synced yet",
			prepare: func(b *bed) { b.took, b.read = time.Second, func(types.NamespacedName) string { return "1" } },
			before:  time.Second + changeWait + 500*time.Millisecond, again: []string{"db " + secondVersion + "-r2"},
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", "")
			if test.prepare != nil {
				test.prepare(b)
			}
			b.start()
			b.rotate("shop/db", 2, nil)
			b.pass(test.before)
			b.stop()
			b.taken()
			b.with(func() { b.refuse = nil })
			b.start()
			event := b.rotate("shop/db", 2, nil)
			b.pass(20 * time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.again)
		})
	}
}

// cluster creates a ClusterExternalSecret with a number of ExternalSecrets.
func (b *bed) cluster(children int) {
	b.Helper()
	b.add(parse(b, "metadata: {name: all, uid: uid-all}"))
	for i := range children {
		b.secret(fmt.Sprintf("child-%d", i), "shop/db", "")
		child := b.objects[types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("child-%d", i)}]
		child.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
			"apiVersion": externalsecret.APIVersion, "kind": "ClusterExternalSecret", "name": "all", "uid": "uid-all", "controller": true,
		}}
	}
}

func TestAnActuatorThatTakesOverAsksNoClusterExternalSecretAgain(t *testing.T) {
	inBed(t, func(b *bed) {
		const before = 350 * time.Millisecond
		b.cluster(8)
		b.start()
		b.rotate("shop/db", 2, nil)
		b.pass(before)
		b.stop()
		b.start()
		event := b.deliver(b.Context(), rotation("shop/db", 2, func(c *events.Change) { c.Time = c.Time.Add(-before) })) // the same event
		b.pass(time.Minute)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"all " + secondVersion})
	})
}

func TestAPatchThatFailsIsMadeAgain(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.refuse = apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("cannot patch resource"))
		b.start()
		event := b.rotate("shop/db", 2, nil)
		b.pass(10 * time.Minute)
		if done, _ := b.isSettled(event); done {
			t.Error("a right that is missing, and may be granted, ends it")
		}
		b.with(func() { b.refuse = nil })
		b.pass(maxRetryDelay)
		b.mustSettle(event)
		b.want("outcomes", b.outcomes(), []string{"db completed synced"})
	})
}

func TestAPatchThatIsDeniedIsGivenUp(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.refuse = apierrors.NewForbidden(schema.GroupResource{}, "db", errors.New("denied by a webhook"))
		b.start()
		event := b.rotate("shop/db", 2, nil)
		b.pass(2 * time.Minute)
		if done, err := b.isSettled(event); !done || err == nil {
			t.Errorf("the event is done with: %t (%v), want it given up", done, err)
		}
		b.want("outcomes", b.outcomes(), []string{"db failed patch-denied"})
		if warnings := b.warnings(); len(warnings) != 1 {
			t.Errorf("Kubernetes Events: %q", warnings)
		}
	})
}

func TestAnExternalSecretThatGoesAwayEndsItsSync(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.deaf["db"] = true
		b.start()
		event := b.rotate("shop/db", 2, nil)
		b.pass(500 * time.Millisecond)
		b.remove("db")
		b.pass(5 * time.Second)
		b.mustSettle(event)
		b.want("outcomes", b.outcomes(), []string{"db skipped externalsecret-gone"})
	})
}

func TestASyncerThatStopsReturnsItsSlots(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = time.Minute
		b.secret("db", "shop/db", "")
		b.start()
		b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		if b.active != 1 {
			t.Fatalf("%d slots are in use, want 1", b.active)
		}
		b.stop()
		if b.active != 0 {
			t.Errorf("%d slots are counted as in use after the Syncer has stopped", b.active)
		}
	})
}
