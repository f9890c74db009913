package forcesync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

func TestASyncThatDoesNotComeIsGivenUpInTheEnd(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*bed)
		outcome string
		warning string
	}{
		{
			"the operator does not get to it", func(b *bed) { b.deaf["db"] = true }, "db failed timed-out",
			"db SyncFailed timed-out: the secret in the store changed, but External Secrets Operator did not sync it in time",
		},
		{
			"the operator cannot", func(b *bed) { b.failing["db"] = true }, "db failed sync-error",
			"db SyncFailed sync-error: the secret in the store changed, but External Secrets Operator cannot sync it",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				test.prepare(b)
				b.secret("db", "shop/db", "")
				b.start()
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
				t.Error("more are asked than max-syncs allows")
			}
			b.pass(2 * time.Second)
			b.mustSettle(other)
		}
	})
}

func TestADeletedSecretIsNotWaitedFor(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.failing["db"] = true // for there is nothing to read
		b.start()
		event := b.rotate("shop/db", 2, func(c *events.Change) {
			c.Verb, c.Store.Operation, c.Store.Revision = events.VerbDeleted, "delete", "2/deleted"
		})
		b.pass(minSlotTime + time.Second)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"db main/root/secret/shop/db/2/deleted"})
		b.want("outcomes", b.outcomes(), []string{"db skipped source-deleted"})
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
		{name: "but not more often", stale: 9, patches: again, outcome: "db skipped no-change"},
		{name: "where a role was rotated", stale: 1, target: readsRole, mutate: role, patches: roleAgain, outcome: "db completed synced"},
		{name: "not where it writes nothing", stale: 9, target: ", target: {creationPolicy: None}", patches: again[:1], outcome: "db completed synced"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
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
		})
	}
}
