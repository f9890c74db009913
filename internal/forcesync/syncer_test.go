package forcesync

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const secondVersion = "main/root/secret/shop/db/2"

// inBed runs a test in a bed of its own.
func inBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		test(b)
		b.stop()
	})
}

// want compares two lists in any order.
func (b *bed) want(what string, got, want []string) {
	b.Helper()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestARotationSyncsWhatReadsIt(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.secret("mail", "shop/mail", "")
		b.secret("too", "shop/db", "")
		b.start(b.host())
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "too " + secondVersion})
		b.want("outcomes", b.outcomes(), []string{"db completed synced", "too completed synced"})
		b.want("Kubernetes Events", b.warnings(), nil)
		var annotations map[string]string
		b.with(func() { annotations = b.objects[types.NamespacedName{Namespace: "shop", Name: "db"}].GetAnnotations() })
		want := map[string]string{
			externalsecret.AnnotationForceSync: secondVersion + "@00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			events.AnnotationCause:             secondVersion,
			events.AnnotationTraceparent:       "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			annotationSyncedFrom:               "1-",
		}
		if diff := cmp.Diff(want, annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		b.stop()
		if left := b.left(); left != "" {
			t.Errorf("something is left: %s", left)
		}
	})
}

func TestAnEventStaysOpenUntilItsSyncsAreDone(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = 10 * time.Second
		b.secret("db", "shop/db", "")
		b.start(b.host())
		event := b.rotate("shop/db", 2, nil)
		b.pass(9 * time.Second)
		if done, _ := b.isSettled(event); done {
			t.Error("the event is done with before the sync")
		}
		b.pass(2 * time.Second)
		b.mustSettle(event)
	})
}

func TestWhatCannotBeForcedIsTold(t *testing.T) {
	tests := []struct {
		name, spec string
		dryRun     bool
		outcome    string
		warned     bool
	}{
		{name: "a policy by which it is read once", spec: ", refreshPolicy: CreatedOnce", outcome: "db skipped created-once", warned: true},
		{name: "an interval of zero", spec: ", refreshPolicy: Periodic, refreshInterval: 0s", outcome: "db skipped no-refresh-interval", warned: true},
		{name: "a generator", spec: ", dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: p}}}]", outcome: "db skipped generator", warned: true},
		{name: "a dry run", dryRun: true, outcome: "db skipped dry-run"},
		{name: "a policy, also in a dry run", spec: ", refreshPolicy: CreatedOnce", dryRun: true, outcome: "db skipped created-once", warned: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("db", "shop/db", test.spec)
				host := b.host()
				host.DryRun = test.dryRun
				b.start(host)
				event := b.rotate("shop/db", 2, nil)
				b.pass(time.Second)
				b.mustSettle(event)
				b.want("patches", b.taken(), nil)
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				if warnings := b.warnings(); len(warnings) > 0 != test.warned {
					t.Errorf("Kubernetes Events: %q", warnings)
				}
			})
		})
	}
}

func TestTheSyncerSaysWhenSomethingIsDue(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.deaf["db"] = true
		b.start(b.host())
		next := func() (after time.Duration, ok bool) {
			b.ask(func() {
				var at time.Time
				at, ok = b.y.Next()
				after = time.Until(at)
			})
			return after, ok
		}
		if after, ok := next(); ok {
			t.Errorf("something is due in %s, and nothing has happened", after)
		}
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		if after, ok := next(); !ok || after != slotTime-time.Second {
			t.Errorf("due in %s (%t), want when the slot is given up", after, ok)
		}
		b.pass(slotTime)
		if after, ok := next(); !ok || after != syncTimeout-slotTime-time.Second {
			t.Errorf("due in %s (%t), want at the timeout", after, ok)
		}
		b.pass(syncTimeout)
		b.mustSettle(event)
		if after, ok := next(); ok {
			t.Errorf("something is due in %s, and nothing is left to do", after)
		}
	})
}
