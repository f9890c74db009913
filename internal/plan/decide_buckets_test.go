package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// crowded says of an event that its source has more keys than it lists. The key password is not listed: its bucket has the fingerprint of a letter,
// and last changed at a version. Another bucket has just changed.
func crowded(letter, changedAt string) func(*events.Change) {
	return func(c *events.Change) {
		c.Truncated, c.Changed = true, nil
		delete(c.Keys, "password")
		c.Buckets = map[string]events.Key{
			events.Bucket("password"): {Fingerprint: fp(letter), ChangedAt: changedAt}, "00": {Fingerprint: fp("6"), ChangedAt: "100"},
		}
	}
}

// both alters an event twice.
func both(first, second func(*events.Change)) func(*events.Change) {
	return func(c *events.Change) {
		first(c)
		second(c)
	}
}

// ofPassword is what a workload wants that reads the key password.
var ofPassword = workload.Want{Keys: []string{"password"}}

// isFoundCrowded says that the stream has lost what was before.
func isFoundCrowded(c *events.Change) {
	isFirstSeen(c)
	crowded("7", "")(c)
	c.Buckets["00"] = events.Key{Fingerprint: fp("6")}
}

// listsBeside lists one more key. That of "k185" would be in the bucket of the key password.
func listsBeside(name string) func(*events.Change) {
	return func(c *events.Change) { c.Keys[name] = events.Key{Fingerprint: fp("5")} }
}

func TestDecideComparesAKeyThatIsNotListedByItsBucket(t *testing.T) {
	// recordedWhole is one of a source that was truncated and had no buckets.
	recordedWhole := entryOf(workload.RolledFor{Fingerprint: fp("a"), Version: "90", UID: "uid", Scope: workload.ScopeOf(nil)})
	passwordAndUser := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password", "user"}}
	userIsIgnored := func(c *events.Change) {
		c.Keys["user"] = events.Key{Fingerprint: fp("3"), ChangedAt: "100", Ignored: events.IgnoredByAnnotation}
	}
	mayLack := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	testDecide(t, []decideTest{
		{name: "its bucket has changed", ref: passwordDB, change: crowded("7", "100"), memory: cameLive, want: Changed, unnoted: true},
		{
			name: "another bucket has changed", ref: passwordDB, change: crowded("7", ""), memory: cameLive, want: KeysNotConsumed,
			records: workload.NoVersion,
		},
		{
			name: "a bucket has changed, and the key that is read is listed", ref: userDB, change: crowded("7", "100"), memory: cameLive,
			want: KeysNotConsumed, records: workload.NoVersion,
		},
		{
			name: "of three keys that are read, one is not listed, and none has changed",
			ref: workload.Reference{
				Kind: events.KindSecret, Name: "db", Keys: []string{"ca.crt", "password", "user"}, Required: []string{"ca.crt", "password", "user"},
			},
			change: both(crowded("7", ""), listsBeside("ca.crt")), memory: cameLive, want: KeysNotConsumed, records: workload.NoVersion,
		},
		{name: "a bucket has changed, and all keys are read", change: crowded("7", "100"), memory: cameLive, want: Changed, unnoted: true},
		{
			name: "only the key that is listed has changed, and does not count", ref: passwordAndUser, change: both(crowded("7", ""), userIsIgnored),
			memory: cameLive, want: KeysNotConsumed, records: workload.NoVersion,
		},
		{
			name: "its bucket has changed, and the key that is listed does not count", ref: passwordAndUser,
			change: both(crowded("7", "100"), userIsIgnored), memory: cameLive, want: Changed, unnoted: true,
		},
		{
			name: "a key that does not count has changed, and all keys are read", change: both(crowded("7", ""), userIsIgnored), memory: cameLive,
			want: Changed, unnoted: true,
		},
		{
			name: "a key that was not listed is gone, and one that is listed does not count", memory: cameLive, want: Changed, unnoted: true,
			change: func(c *events.Change) {
				c.Changed, c.Buckets = nil, map[string]events.Key{"00": {ChangedAt: "100"}}
				c.Keys["password"], c.Keys["user"] = events.Key{Fingerprint: fp("2")}, events.Key{Fingerprint: fp("3"), Ignored: events.IgnoredByAnnotation}
			},
		},
		{
			name: "there is no key left in its bucket", ref: passwordDB, memory: cameLive, want: KeyMissing,
			change: both(crowded("7", "100"), func(c *events.Change) { c.Buckets[events.Bucket("password")] = events.Key{ChangedAt: "100"} }),
		},
		{
			name: "the pods can start without it, and there is no key left in its bucket", ref: mayLack, memory: cameLive, want: Changed, unnoted: true,
			change: both(crowded("7", "100"), func(c *events.Change) { c.Buckets[events.Bucket("password")] = events.Key{ChangedAt: "100"} }),
		},
		{
			name: "the workload was rolled for it when it was listed, and it is back, not listed", ref: passwordDB, memory: cameLive, want: KeysNotConsumed,
			state:  recordAt("90", ofPassword, func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "90"} }),
			change: crowded("7", "90"),
		},
		{
			name: "the workload was rolled when nothing was said of single keys, and another has changed since", ref: passwordDB, state: recordedWhole,
			change: crowded("7", ""), memory: cameLive, want: KeysNotConsumed,
		},
		{
			name: "the workload was rolled when nothing was said of single keys, and then it was", ref: passwordDB, state: recordedWhole,
			change: both(crowded("7", "90"), func(c *events.Change) { c.Verb, c.ChangedAt, c.Previous = events.VerbObserved, "90", "" }),
			memory: cameLive, want: KeysNotConsumed,
		},
		{
			name: "the workload was rolled when nothing was said of single keys, and its bucket has changed since", ref: passwordDB,
			state: recordedWhole, change: crowded("7", "100"), memory: cameLive, want: Changed,
		},
	})
}

func TestDecideComparesABucketWithTheRecordOnceTheStreamWasLost(t *testing.T) {
	recordedAs := func(alter func(*events.Change)) func(*workload.Workload) { return recordAt("90", ofPassword, alter) }
	other := both(isFoundCrowded, crowded("8", ""))
	testDecide(t, []decideTest{
		{name: "it is the same", ref: passwordDB, state: recordedAs(isFoundCrowded), change: isFoundCrowded, memory: wasThere, want: FirstSeen},
		{name: "it differs", ref: passwordDB, state: recordedAs(other), change: isFoundCrowded, memory: wasThere, want: Changed},
		{
			name: "it differs, and a key beside was listed that is in another bucket", ref: passwordDB, state: recordedAs(both(other, listsBeside("zone"))),
			change: isFoundCrowded, memory: wasThere, want: Changed,
		},
		{
			name: "it differs because a key of it was listed", ref: passwordDB, state: recordedAs(both(other, listsBeside("k185"))),
			change: isFoundCrowded, memory: wasThere, want: FirstSeen,
		},
		{
			name: "it differs because the key that is read was listed", ref: passwordDB, state: recordedAs(isFirstSeen),
			change: isFoundCrowded, memory: wasThere, want: FirstSeen,
		},
	})
}
