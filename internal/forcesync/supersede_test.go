package forcesync

import (
	"testing"
	"time"
)

func TestALaterVersionTakesThePlaceOfTheEarlier(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*bed)
		patches []string
	}{
		{
			"which still waits for its turn", func(b *bed) {
				for _, name := range []string{"a", "b", "c"} {
					b.secret(name, "other", "")
					b.deaf[name] = true
				}
				b.rotate("other", 2, nil)
				b.pass(10 * time.Millisecond)
			}, []string{"db main/root/secret/shop/db/3"},
		},
		{
			"which was asked for", func(b *bed) { b.took = 10 * time.Second },
			[]string{"db " + secondVersion, "db main/root/secret/shop/db/3", "db main/root/secret/shop/db/3-r1"},
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", "")
			b.start()
			test.prepare(b)
			b.taken()
			first := b.rotate("shop/db", 2, nil)
			b.pass(time.Second)
			second := b.rotate("shop/db", 3, nil)
			b.pass(10 * time.Millisecond)
			b.pass(time.Minute)
			b.mustSettle(first)
			b.mustSettle(second)
			b.want("patches", b.taken(), test.patches)
			if outcomes := b.outcomes(); len(outcomes) != 1 || outcomes[0] != "db completed synced" {
				b.Errorf("outcomes: %q", outcomes)
			}
		})
	}
}

// A sync of what differs in each answer rolls those who read it, so that one is not asked for without need.
func TestTwoPathsAreNotReadAgainTogetherWithALease(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = 10 * time.Second
		b.secret("db", "shop/db", ", dataFrom: [{extract: {key: shop/mail}}, "+
			"{extract: {key: creds/shop}, sourceRef: {storeRef: {name: roles, kind: ClusterSecretStore}}}]")
		b.start()
		first := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		second := b.rotate("shop/mail", 2, nil)
		b.pass(time.Minute)
		b.mustSettle(first)
		b.mustSettle(second)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "db main/root/secret/shop/mail/2"})
	})
}

// The stream has only the last event of a source, so nothing bounds those that a sync would keep while it waits.
func TestALaterVersionLetsGoOfTheEventsBefore(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = time.Minute
		b.secret("db", "shop/db", "")
		b.start()
		var earlier []*event
		for version := range int64(20) {
			earlier = append(earlier, b.rotate("shop/db", 2+version, nil))
			b.pass(10 * time.Millisecond)
		}
		// One that comes late is let go at once.
		earlier = append(earlier, b.rotate("shop/db", 3, nil))
		b.pass(10 * time.Millisecond)
		last := b.rotate("shop/db", 100, nil)
		b.pass(10 * time.Millisecond)
		for _, e := range earlier {
			b.mustSettle(e)
		}
		again := b.rotate("shop/db", 100, nil)
		b.pass(10 * time.Millisecond)
		if done, err := b.isSettled(last); !done || err != nil {
			t.Errorf("an event that has come again is settled: %t (%v), want the later one to be held in its place", done, err)
		}
		if done, _ := b.isSettled(again); done {
			t.Error("the later one is done with before the sync")
		}
		b.pass(5 * time.Minute)
		b.mustSettle(again)
	})
}
