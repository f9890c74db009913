package forcesync

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/workload"
)

const secondVersion = "main/root/secret/shop/db/2"

// inBed runs a test in a cluster of its own.
func inBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		test(b)
		b.stop()
	})
}

// want compares what was done, in whatever order.
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
			workload.AnnotationCause:           secondVersion,
			workload.AnnotationTraceparent:     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
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

func TestASyncThatDoesNotComeIsGivenUpInTheEnd(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*bed)
		outcome string
		warning string
	}{
		{
			"the operator does not get to it", func(b *bed) { b.deaf["db"] = true }, "db failed timed-out",
			"db SyncFailed timed-out: the secret in the store changed, but External Secrets Operator did not sync it in time (openbao/main/root/secret/shop/db)",
		},
		{
			"the operator cannot", func(b *bed) { b.failing["db"] = true }, "db failed sync-error",
			"db SyncFailed sync-error: the secret in the store changed, but External Secrets Operator cannot sync it (openbao/main/root/secret/shop/db)",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				test.prepare(b)
				b.secret("db", "shop/db", "")
				b.start(b.host())
				event := b.rotate("shop/db", 2, nil)
				b.pass(5*time.Minute - time.Second)
				if done, _ := b.isSettled(event); done {
					t.Error("it was given up too early")
				}
				b.pass(2 * time.Second)
				b.mustSettle(event)
				b.want("patches", b.taken(), []string{"db " + secondVersion})
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				b.want("Kubernetes Events", b.warnings(), []string{test.warning})
			})
		})
	}
}

func TestASyncThatFailsAtFirstIsWaitedFor(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.failing["db"] = true
		b.start(b.host())
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Minute)
		b.with(func() { b.failing["db"] = false })
		b.queue <- types.NamespacedName{Namespace: "shop", Name: "db"} // as the operator tries again
		b.pass(time.Second)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"db " + secondVersion})
		b.want("outcomes", b.outcomes(), []string{"db completed synced"})
	})
}

func TestWhatFailsHoldsUpNothingElse(t *testing.T) {
	inBed(t, func(b *bed) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			b.secret(name, "shop/db", "")
			b.failing[name] = true
		}
		b.secret("mail", "shop/mail", "")
		b.start(b.host())
		b.rotate("shop/db", 2, nil)
		b.pass(10 * time.Millisecond)
		other := b.rotate("shop/mail", 2, nil)
		b.pass(2 * time.Second)
		b.mustSettle(other)
	})
}

func TestWhatFailsAnywayIsAskedNoFasterForThat(t *testing.T) {
	inBed(t, func(b *bed) {
		const many = 20
		for i := range many {
			name := fmt.Sprintf("db-%d", i)
			b.secret(name, "shop/db", "")
			b.failing[name] = true
			b.queue <- types.NamespacedName{Namespace: "shop", Name: name}
		}
		b.start(b.host())
		b.pass(many*b.took + time.Second)
		b.rotate("shop/db", 2, nil)
		b.pass(failingSlotTime - time.Second)
		if asked, most := len(b.taken()), maxSyncs; asked > most {
			t.Errorf("%d were asked, want %d at most", asked, most)
		}
		b.pass(many * failingSlotTime)
		if asked, most := len(b.taken()), maxSyncs; asked != many-most {
			t.Errorf("%d more were asked, want %d", asked, many-most)
		}
	})
}

func TestADeletedSecretThatCouldNotBeReadBeforeIsNotWaitedForEither(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.failing["db"] = true
		b.queue <- types.NamespacedName{Namespace: "shop", Name: "db"}
		b.start(b.host())
		b.pass(time.Second)
		event := b.rotate("shop/db", 2, func(c *events.Change) { c.Verb = events.VerbDeleted })
		b.pass(failingSlotTime + time.Second)
		b.mustSettle(event)
		b.want("outcomes", b.outcomes(), []string{"db skipped source-deleted"})
	})
}

func TestWhatTheOperatorDoesNotGetToHoldsUpTheOthersForAWhileOnly(t *testing.T) {
	inBed(t, func(b *bed) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			b.secret(name, "shop/db", "")
			b.deaf[name] = true
		}
		b.secret("mail", "shop/mail", "")
		b.start(b.host())
		b.rotate("shop/db", 2, nil)
		b.pass(10 * time.Millisecond)
		other := b.rotate("shop/mail", 2, nil)
		b.pass(slotTime - time.Second)
		if done, _ := b.isSettled(other); done {
			t.Error("more are asked than max-syncs allows")
		}
		b.pass(2 * time.Second)
		b.mustSettle(other)
	})
}

func TestADeletedSecretIsNotWaitedFor(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.failing["db"] = true // for there is nothing to read
		b.start(b.host())
		event := b.rotate("shop/db", 2, func(c *events.Change) {
			c.Verb, c.Store.Operation, c.Store.Revision = events.VerbDeleted, "delete", "2/deleted"
		})
		b.pass(time.Second)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"db main/root/secret/shop/db/2/deleted"})
		b.want("outcomes", b.outcomes(), []string{"db skipped source-deleted"})
	})
}

func TestAWrittenVersionThatChangesNothingIsAskedForAgain(t *testing.T) {
	stale := func(times int) func(types.NamespacedName) string {
		return func(types.NamespacedName) string {
			if times--; times >= 0 {
				return "1"
			}
			return "2"
		}
	}
	again := []string{"db " + secondVersion, "db " + secondVersion + "-r1", "db " + secondVersion + "-r2"}
	undeleted := func(c *events.Change) { c.Store.Operation = "undelete" }
	uncounted := func(c *events.Change) { c.Store.Version = 0 }
	tests := []struct {
		name    string
		stale   int // how often an old version is read
		target  string
		mutate  func(*events.Change)
		patches []string
		outcome string
	}{
		{name: "not where it changes at once", patches: again[:1], outcome: "db completed synced"},
		{name: "until it changes", stale: 1, patches: again[:2], outcome: "db completed synced"},
		{name: "twice", stale: 2, patches: again, outcome: "db completed synced"},
		{name: "but not more often", stale: 9, patches: again, outcome: "db skipped no-change"},
		{name: "where polling found it", stale: 9, mutate: func(c *events.Change) { c.Store.Operation = "" }, patches: again, outcome: "db skipped no-change"},
		{name: "not where no version was written", stale: 9, mutate: undeleted, patches: again[:1], outcome: "db completed synced"},
		{name: "not where none are counted", stale: 9, mutate: uncounted, patches: again[:1], outcome: "db completed synced"},
		{name: "not where nobody watches what it writes", stale: 9, target: ", target: {manifest: {apiVersion: example.org/v1, kind: Thing}}", patches: again[:1], outcome: "db completed synced"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("db", "shop/db", test.target)
				b.read = stale(test.stale)
				b.start(b.host())
				event := b.rotate("shop/db", 2, test.mutate)
				b.pass(20 * time.Second)
				b.mustSettle(event)
				b.want("patches", b.taken(), test.patches)
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				b.want("Kubernetes Events", b.warnings(), nil)
			})
		})
	}
}

func TestALaterVersionTakesThePlaceOfTheEarlier(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*bed)
		after   time.Duration
		patches []string
	}{
		{
			"which still waits for its turn", func(b *bed) {
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					b.secret(name, "other", "")
					b.deaf[name] = true
				}
				b.rotate("other", 2, nil)
				b.pass(10 * time.Millisecond)
			}, time.Second, []string{"db main/root/secret/shop/db/3"},
		},
		{
			"which was asked for", func(b *bed) { b.took = 10 * time.Second }, time.Second,
			[]string{"db " + secondVersion, "db main/root/secret/shop/db/3"},
		},
		{
			"which is looked for in what is written", func(b *bed) { b.read = func(types.NamespacedName) string { return "1" } }, time.Second,
			[]string{"db " + secondVersion, "db main/root/secret/shop/db/3"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("db", "shop/db", "")
				b.start(b.host())
				test.prepare(b)
				b.taken()
				first := b.rotate("shop/db", 2, nil)
				b.pass(test.after)
				second := b.rotate("shop/db", 3, nil)
				b.pass(10 * time.Millisecond)
				b.with(func() { b.read = nil })
				b.pass(time.Minute)
				b.mustSettle(first)
				b.mustSettle(second)
				b.want("patches", b.taken(), test.patches)
				if outcomes := b.outcomes(); len(outcomes) != 1 || outcomes[0] != "db completed synced" {
					t.Errorf("outcomes: %q", outcomes)
				}
			})
		})
	}
}

func TestALaterVersionThatComesWhileTheEarlierIsBeingAskedForIsNotLost(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.start(b.host())
		first, second := b.event(rotation("shop/db", 2, nil)), b.event(rotation("shop/db", 3, nil))
		b.with(func() { b.content = "3" })
		b.ask(func() {
			b.take(first)
			b.y.Advance(b.Context())
			b.y.patcher.running.Wait() // the answer is there, and not looked at yet
			b.take(second)
		})
		b.pass(10 * time.Second)
		b.mustSettle(first)
		b.mustSettle(second)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "db main/root/secret/shop/db/3"})
	})
}

func TestAnEarlierVersionThatComesAgainChangesNothing(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = 10 * time.Second
		b.secret("db", "shop/db", "")
		b.start(b.host())
		later := b.rotate("shop/db", 3, nil)
		b.pass(time.Second)
		earlier := b.deliver(b.Context(), rotation("shop/db", 2, nil))
		b.pass(time.Minute)
		b.mustSettle(earlier)
		b.mustSettle(later)
		b.want("patches", b.taken(), []string{"db main/root/secret/shop/db/3"})
	})
}

func TestTwoPathsOfOneExternalSecretAreBothWaitedFor(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = 10 * time.Second
		b.secret("db", "shop/db", ", dataFrom: [{extract: {key: shop/mail}}]")
		b.start(b.host())
		first := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		second := b.rotate("shop/mail", 2, nil)
		b.pass(time.Minute)
		b.mustSettle(first)
		b.mustSettle(second)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "db main/root/secret/shop/mail/2"})
	})
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
		if after, ok := next(); !ok || after != b.host().Timeout-slotTime-time.Second {
			t.Errorf("due in %s (%t), want at the timeout", after, ok)
		}
		b.pass(b.host().Timeout)
		b.mustSettle(event)
		if after, ok := next(); ok {
			t.Errorf("something is due in %s, and nothing is left to do", after)
		}
	})
}
