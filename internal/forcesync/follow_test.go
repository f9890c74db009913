package forcesync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

func TestASyncThatDoesNotComeIsGivenUpInTheEnd(t *testing.T) {
	for _, test := range []struct {
		name             string
		prepare          func(*bed)
		outcome, warning string
	}{
		{
			"the operator does not get to it", func(b *bed) { b.deaf["db"] = true }, "db failed timed-out",
			"db SyncFailed timed-out: the secret in the store changed, but External Secrets Operator did not sync it in time",
		},
		{
			"the operator cannot", func(b *bed) { b.failing["db"] = true }, "db failed sync-error",
			"db SyncFailed sync-error: the secret in the store changed, but External Secrets Operator cannot sync it",
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			test.prepare(b)
			b.secret("db", "shop/db", "")
			b.start()
			event := b.rotate("shop/db", 2, nil)
			b.pass(5*time.Minute - time.Second)
			if done, _ := b.isSettled(event); done {
				b.Error("it was given up too early")
			}
			b.pass(2 * time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), []string{"db " + secondVersion})
			b.want("outcomes", b.outcomes(), []string{test.outcome})
			b.want("Kubernetes Events", b.warnings(), []string{test.warning})
		})
	}
}

func TestWhatTheOperatorDoesNotGetToHoldsUpTheOthersForAWhileOnly(t *testing.T) {
	inBed(t, func(b *bed) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			b.secret(name, "shop/db", "")
			b.deaf[name] = true
		}
		b.secret("mail", "shop/mail", "")
		b.start()
		// At first nobody knows how long the operator takes.
		for i, slotTime := range []time.Duration{maxSlotTime, minSlotTime} {
			version := int64(2 + i)
			b.rotate("shop/db", version, nil)
			b.pass(10 * time.Millisecond)
			other := b.rotate("shop/mail", version, nil)
			b.pass(slotTime - time.Second)
			if done, _ := b.isSettled(other); done {
				t.Error("more are asked than MaxSyncs allows")
			}
			b.pass(2 * time.Second)
			b.mustSettle(other)
		}
	})
}

// readsRole makes an ExternalSecret read the password of a static role as well, and roleSource is that role.
const readsRole = ", dataFrom: [{sourceRef: {storeRef: {name: roles, kind: ClusterSecretStore}}, extract: {key: static-creds/db}}]"

var roleSource = events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "database", Path: "static-creds/db"}.Source()

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
	role := func(c *events.Change) {
		c.Source, c.Store.Engine, c.Store.Version, c.Store.Operation = roleSource, events.EngineDatabase, 0, ""
	}
	roleAgain := []string{"db main/root/database/static-creds/db/2", "db main/root/database/static-creds/db/2-r1"}
	for _, test := range []struct {
		name    string
		stale   int // how often an old version is read
		target  string
		mutate  func(*events.Change)
		patches []string
		outcome string
	}{
		{name: "not where it changes at once", patches: again[:1], outcome: "db completed synced"},
		{name: "until it changes", stale: 1, patches: again[:2], outcome: "db completed synced"},
		{name: "but not more often", stale: 9, patches: again, outcome: "db skipped no-change"},
		{name: "where a role was rotated", stale: 1, target: readsRole, mutate: role, patches: roleAgain, outcome: "db completed synced"},
		{
			name: "not where nobody sees what it writes", stale: 9, target: ", target: {manifest: {apiVersion: example.org/v1, kind: Widget}}",
			patches: again[:1], outcome: "db completed synced",
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", test.target)
			b.read = stale(test.stale)
			b.start()
			event := b.rotate("shop/db", 2, test.mutate)
			b.pass(20 * time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.patches)
			b.want("outcomes", b.outcomes(), []string{test.outcome})
			b.want("Kubernetes Events", b.warnings(), nil)
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

func TestWhatIsObservedOfWhatIsWrittenIsAChangeWhereItExistsAgain(t *testing.T) {
	for _, test := range []struct {
		name, previous, outcome string
		patches                 int
	}{
		{name: "a hold is none", outcome: "db skipped no-change", patches: 1 + maxRepeats},
		{name: "a Secret that is created with what it had is one", previous: fp("a"), outcome: "db completed synced", patches: 1},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", "")
			b.read = func(types.NamespacedName) string { return "1" }
			b.start()
			b.rotate("shop/db", 2, nil)
			b.pass(time.Second)
			b.deliver(b.Context(), events.Change{
				Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbObserved,
				UID: "s", ResourceVersion: "1", ChangedAt: "1", Fingerprint: fp("a"), Previous: test.previous,
			})
			b.pass(time.Minute)
			b.want("outcomes", b.outcomes(), []string{test.outcome})
			if patches := b.taken(); len(patches) != test.patches {
				b.Errorf("patches: got %q, want %d", patches, test.patches)
			}
		})
	}
}
