package sources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMerge(t *testing.T) {
	unreadable := kinds.UnreadableEvent(9)
	for _, tt := range []struct {
		name                string
		known, stored, want *kinds.LastEvent
	}{
		{"of an unknown source is what is stored", nil, eventAt(1, "u", "5", "5"), eventAt(1, "u", "5", "5")},
		{"with an event that cannot be read is what was known before", eventAt(3, "u", "5", "5"), unreadable, eventAt(9, "u", "5", "5")},
		{"with the same event on a new stream is that event", eventAt(3, "u", "5", "5"), eventAt(1, "u", "5", "5"), eventAt(1, "u", "5", "5")},
		{
			"with a later event of another cluster that replaced this one is that event",
			eventAt(3, "u", "500", "500"), eventAt(4, "v", "6", "6"), eventAt(4, "v", "6", "6"),
		},
		{
			"with an earlier event, after a rollback, is what is lost",
			eventAt(9, "u", "10", "10"), eventAt(3, "u", "9", "9"), lostAt(3, eventAt(9, "u", "10", "10")),
		},
		{
			"with an event of a watcher that knows no change, is what is lost",
			eventAt(9, "u", "10", "7"), eventAt(12, "u", "10", ""), lostAt(12, eventAt(9, "u", "10", "7")),
		},
		{
			"with what was deleted, after a rollback, is the lost deletion",
			deletedAt(9, "u", "5"), eventAt(3, "u", "5", "5"), lostAt(3, deletedAt(9, "u", "5")),
		},
		{
			"with what another watcher has seen since it was deleted is that event",
			deletedAt(9, "u", "5"), eventAt(12, "u", "5", "5"), eventAt(12, "u", "5", "5"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "merged", tt.want, merge(tt.known, tt.stored), everyField)
		})
	}
}

func TestMissing(t *testing.T) {
	tombstone := func(age time.Duration) *kinds.LastEvent {
		return mustLast(t, events.Change{Verb: events.VerbDeleted, Fingerprint: fingerprint, Time: epoch.Add(-age)})
	}
	for known, lost := range map[*kinds.LastEvent]bool{
		nil: false, kinds.UnreadableEvent(3): false, eventAt(3, "u", "5", ""): true,
		tombstone(events.TombstoneTTL - time.Second): true, tombstone(events.TombstoneTTL): false,
	} {
		if got := missing(known, epoch); (got != nil) != lost || got != nil && (!got.Lost || got.Seq != 0) {
			t.Errorf("after %+v: got %+v, want a lost event: %t", known, got, lost)
		}
	}
}

// TestAgain publishes events again that the stream has lost.
func TestAgain(t *testing.T) {
	written := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	keys := map[string]events.Key{
		"a": {Fingerprint: fingerprintOf("2"), ChangedAt: "7"}, "b": {Fingerprint: fingerprintOf("3"), ChangedAt: "5"},
		"c": {ChangedAt: "7"}, "d": {Fingerprint: fingerprintOf("4")},
	}
	for _, tt := range []struct {
		name   string
		change events.Change
	}{
		{"of a source on hold", events.Change{
			Verb: events.VerbObserved, Hold: "migration", Match: true, WrittenAt: written, ChangedAt: "7", Keys: keys,
		}},
		{"of a creation", events.Change{
			Verb: events.VerbChanged, ChangedAt: "7", CreatedAt: "7", Created: true, Ignore: true,
			Keys: map[string]events.Key{"a": {Fingerprint: fingerprintOf("2")}}, Changed: []string{"a"},
		}},
		{"of a deletion", events.Change{Verb: events.VerbDeleted, ChangedAt: "7", Keys: keys}},
		{"of a certificate's Secret", events.Change{
			Verb: events.VerbChanged, ChangedAt: "7", Keys: keys, Changed: []string{"a", "c"},
			Cause: &events.Cause{Source: "certificate/web", Serial: "1f", NotAfter: written},
		}},
		{"of an ExternalSecret that failed", events.Change{
			Verb: events.VerbFailed, ChangedAt: "7", Status: &events.Status{Secret: "db", Reason: "SecretSyncedError", Revision: "4"},
			Cause: &events.Cause{Event: "bao/root/secret/shop/db/7", Earlier: "bao/root/secret/shop/db/6"},
		}},
		{"of a rotation in a store", events.Change{
			Verb: events.VerbRotated, ChangedAt: "1773500966000000001", ResourceVersion: "1773500966000000001", Truncated: true,
			WrittenAt: written.Add(3), Time: written.Add(time.Second),
			Store: &events.StoreState{
				Servers: []string{"https://bao:8200"}, Engine: events.EngineKV, Version: 7, Revision: "7", Operation: "update", By: "root",
			},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.change.UID, tt.change.Fingerprint = "u", fingerprint
			if tt.change.ResourceVersion == "" {
				tt.change.ResourceVersion = "7"
			}
			entry := mustLast(t, tt.change)
			if change, ok := again(entry); ok {
				t.Errorf("got %+v of an event that the stream has", change)
			}
			got, ok := again(lostBehind(entry, 0))
			if !ok {
				t.Fatal("it is not published again")
			}
			testkit.WantEqual(t, "event", tt.change, got, cmpopts.EquateEmpty())
		})
	}
}
