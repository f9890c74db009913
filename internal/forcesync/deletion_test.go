package forcesync

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// asDeleted makes the event of a version that of its deletion, which comes after that of version 2 and before that of its undeletion.
func asDeleted(c *events.Change) {
	c.Verb, c.ResourceVersion, c.Store.Operation, c.Store.Revision = events.VerbDeleted, "2001", "delete", "2/deleted"
}

// People who delete a secret by mistake have until the next refresh to take it back.
func TestADeletionIsNotHurried(t *testing.T) {
	version := []string{"db " + secondVersion}
	for _, test := range []struct {
		name, spec string
		before     func(*bed)
		patches    []string
	}{
		{name: "where the Secret stays", spec: ""},
		{name: "where the Secret would be deleted", spec: ", target: {deletionPolicy: Delete}"},
		{name: "where its keys would be removed", spec: ", target: {deletionPolicy: Merge}"},
		{name: "nor is that told as a change that cannot be synced", spec: ", refreshPolicy: CreatedOnce"},
		{
			name: "nor is a sync that waits for its turn",
			before: func(b *bed) {
				for _, name := range []string{"a", "b", "c"} {
					b.secret(name, "other", "")
					b.with(func() { b.deaf[name] = true })
				}
				b.rotate("other", 2, nil)
				b.pass(10 * time.Millisecond)
				b.taken()
				b.rotate("shop/db", 2, nil)
				b.pass(10 * time.Millisecond)
			},
		},
		{
			name: "nor is a sync asked for again", patches: version,
			before: func(b *bed) {
				b.with(func() { b.read = func(types.NamespacedName) string { return "1" } })
				b.rotate("shop/db", 2, nil)
				b.pass(time.Second)
			},
		},
		{
			name: "nor is a patch sent again", patches: version,
			before: func(b *bed) {
				b.with(func() { b.deaf["db"] = true })
				b.rotate("shop/db", 2, nil)
				b.pass(time.Second)
			},
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", test.spec)
			b.start()
			if test.before != nil {
				test.before(b)
			}
			event := b.rotate("shop/db", 2, asDeleted)
			b.pass(maxSlotTime + time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.patches)
			b.want("outcomes", b.outcomes(), []string{"db skipped source-deleted"})
			b.want("Kubernetes Events", b.warnings(), nil)
		})
	}
}

func TestWhatIsUndeletedIsSyncedOnce(t *testing.T) {
	heard := func(c *events.Change) {
		c.ResourceVersion, c.Store.Operation, c.Store.Revision = "2002", "undelete", "2/undeleted/2001"
	}
	polled := func(c *events.Change) { heard(c); c.Store.Operation = "" }
	const undeleted = "db main/root/secret/shop/db/2/undeleted/2001"
	for _, test := range []struct {
		name    string
		mutate  func(*events.Change)
		isLate  bool // the first answer is that of a server that has the deletion only
		patches []string
	}{
		{name: "by its line in the audit", mutate: heard, patches: []string{undeleted}},
		{name: "by a poll", mutate: polled, patches: []string{undeleted}},
		{name: "unless the operator finds nothing yet", mutate: heard, isLate: true, patches: []string{undeleted, undeleted + "-r1"}},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", ", target: {deletionPolicy: Delete}")
			b.read = func(types.NamespacedName) string { return "1" }
			b.start()
			b.rotate("shop/db", 2, asDeleted)
			b.pass(time.Second)
			if test.isLate {
				b.with(func() { b.reason = "SecretDeleted" })
			}
			event := b.rotate("shop/db", 2, test.mutate)
			b.pass(time.Second)
			b.with(func() { b.reason = "SecretSynced" })
			b.pass(20 * time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.patches)
			b.want("outcomes", b.outcomes(), []string{"db completed synced", "db skipped source-deleted"})
		})
	}
}
