package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Pods that need a key have not started before the source had it.
func TestAKeyThatTheSourceNeverHadRollsNobodyWhoNeedsIt(t *testing.T) {
	beside := workload.Reference{Kind: events.KindSecret, Name: "db", Required: []string{"password"}}
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	added := func(c *events.Change) {
		c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "100", Added: true}
	}
	recorded := func(scope string) func(*workload.Workload) {
		return entryOf(workload.RolledFor{Fingerprint: fp("a"), Version: "90", UID: "uid", Scope: scope})
	}
	testReasons(t, []decideTest{
		{name: "the pods need it", ref: passwordDB, change: added, want: PodsWaited},
		{name: "the pods need it, and read all the others", ref: beside, change: added, want: PodsWaited},
		{name: "the pods became available after it came", ref: passwordDB, state: serving("101"), change: added, want: PodsWaited},
		{
			name: "the record is of another key, that of earlier pods", ref: passwordDB, state: recorded(workload.ScopeOf([]string{"user"})),
			change: added, want: PodsWaited,
		},
		{
			name: "another key changed before it came", ref: bothDB, want: PodsWaited,
			change: func(c *events.Change) {
				added(c)
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "95"}
			},
		},
		{
			name: "the record is of the source without it, that of earlier pods that could start so", ref: passwordDB,
			state: recordAt("90", ofPassword, func(c *events.Change) { delete(c.Keys, "password") }), change: added, want: PodsWaited,
		},
		{
			name: "the same, and some of these pods are left", ref: passwordDB, change: added, want: PodsStarting,
			state: states(recordAt("90", ofPassword, func(c *events.Change) { delete(c.Keys, "password") }), func(w *workload.Workload) {
				w.Progress = workload.Progress{State: workload.Progressing, Pods: 3}
			}),
		},
		{
			name: "all are replaced, and another key has changed with it", ref: bothDB, change: both(added, func(c *events.Change) {
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "100"}
			}),
			state: recordAt("90", workload.Want{Keys: []string{"password", "user"}}, func(c *events.Change) { delete(c.Keys, "password") }),
			want:  Changed,
		},
		{name: "the pods start without it", ref: optional, change: added, want: Changed},
		{name: "the pods read whatever there is", ref: wholeDB, change: added, want: Changed},
		{name: "pods were available before it came", ref: passwordDB, state: serving("99"), change: added, want: Changed},
		{name: "the record is of it", ref: passwordDB, state: recorded(workload.ScopeOf([]string{"password"})), change: added, want: Changed},
		{name: "the record does not say of which keys it is", ref: passwordDB, state: recorded(""), change: added, want: Changed},
		{name: "the workload waits to be rolled for the source", ref: passwordDB, state: owesTo("uid"), change: added, want: Changed},
		{
			name: "it changed after it came", ref: passwordDB, want: Changed,
			change: func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "100"} },
		},
		{
			name: "another key changed after it came", ref: bothDB, want: Changed,
			change: func(c *events.Change) {
				c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "95", Added: true}
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "100"}
			},
		},
	})
}

func TestAKeyIsMissingOnlyIfTheSourceHadIt(t *testing.T) {
	// The other key has changed.
	lacks := func(c *events.Change) {
		delete(c.Keys, "password")
		c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "100"}
	}
	recorded := func(keys ...string) func(*workload.Workload) {
		return entryOf(workload.RolledFor{Fingerprint: fp("a"), Version: "90", UID: "uid", Scope: workload.ScopeOf(keys)})
	}
	testDecide(t, []decideTest{
		{name: "it never had it", ref: bothDB, change: lacks, memory: justCame, want: KeyAwaited},
		{name: "it never had it, which earlier pods did not need", ref: bothDB, state: recorded("user"), change: lacks, memory: justCame, want: KeyAwaited},
		{name: "it was removed", ref: bothDB, change: lacksPassword, memory: justCame, want: KeyMissing},
		{
			name: "the event does not have that any more, and the record is of it", ref: bothDB, state: recorded("password", "user"), change: lacks,
			memory: justCame, want: KeyMissing,
		},
	})
}

// staticCreds is the last event of db while it holds a password of a static role: it was rotated at 80, and has been read again at 100.
func staticCreds(ignored string) func(*events.Change) {
	return func(c *events.Change) {
		c.Changed = []string{"_raw", "ttl"}
		c.Keys = map[string]events.Key{
			"password": {Fingerprint: fp("2"), ChangedAt: "80"}, "user": {Fingerprint: fp("3")},
			"ttl":  {Fingerprint: fp("4"), ChangedAt: "100", Ignored: ignored},
			"_raw": {Fingerprint: fp("5"), ChangedAt: "100", Ignored: ignored},
		}
	}
}

// countsAgain is the next event of db, whose annotation is taken off at 110.
func countsAgain(c *events.Change) {
	staticCreds("")(c)
	c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "110", nil
	for _, name := range []string{"ttl", "_raw"} {
		key := c.Keys[name]
		key.Since = "110"
		c.Keys[name] = key
	}
}

// recordAt gives a workload a record of db as it is seen after a change.
func recordAt(version string, want workload.Want, change func(*events.Change)) func(*workload.Workload) {
	seen := viewOf(changeOf(change), want)
	return entryOf(workload.RolledFor{Fingerprint: seen.fingerprint, Version: version, UID: "uid", Scope: seen.scope})
}

func TestDecideLeavesOutKeysThatDoNotCount(t *testing.T) {
	ignoring := staticCreds(events.IgnoredByAnnotation)
	all, readsTTL := workload.Want{}, workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"ttl"}}
	rotated := func(c *events.Change) {
		ignoring(c)
		c.Keys["password"] = events.Key{Fingerprint: fp("6"), ChangedAt: "100"}
	}
	before := recordAt("80", all, ignoring)
	earlier := func(c *events.Change) {
		staticCreds("")(c)
		c.Keys["_raw"] = events.Key{Fingerprint: fp("7"), ChangedAt: "80"}
	}
	testDecide(t, []decideTest{
		{name: "only they have changed", state: before, change: ignoring, memory: cameLive, want: KeysNotConsumed},
		{name: "another one has changed with them", state: before, change: rotated, memory: cameLive, want: Changed},
		{name: "the pods read nothing else", ref: readsTTL, change: ignoring, memory: cameLive, want: KeysNotConsumed, records: workload.NoVersion},
		{name: "the workload names one of them", rollOn: "auto, secret/db#ttl", state: before, change: ignoring, memory: cameLive, want: Changed},
		{name: "the workload names the source, and none of them", rollOn: "secret/db#*", state: before, change: ignoring, memory: cameLive, want: KeysNotConsumed},
		{
			name: "the workload excludes them itself", rollOn: "auto, !secret/db#ttl, !secret/d*#_raw", change: staticCreds(""), memory: cameLive,
			state: recordAt("80", workload.Want{Except: []string{"_raw", "ttl"}}, staticCreds("")), want: KeysNotConsumed,
		},
		{
			name: "the workload excludes one of them, and another one has changed", rollOn: "auto, !secret/db#ttl", change: staticCreds(""), memory: cameLive,
			state: recordAt("80", workload.Want{Except: []string{"ttl"}}, earlier), want: Changed,
		},
		{
			name: "the workload excludes what its pods read by name", rollOn: "auto, !secret/db#ttl", ref: readsTTL, change: staticCreds(""),
			memory: cameLive, want: Excluded,
		},
		{
			name: "a key that did not count was removed", state: before, memory: cameLive, want: KeysNotConsumed,
			change: func(c *events.Change) {
				ignoring(c)
				c.Keys["ttl"] = events.Key{ChangedAt: "100", Ignored: events.IgnoredByAnnotation}
			},
		},
	})
}

func TestDecideRollsNobodyBecauseOtherKeysCount(t *testing.T) {
	ignoring, all := staticCreds(events.IgnoredByAnnotation), workload.Want{}
	annotated := func(c *events.Change) {
		ignoring(c)
		c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "110", nil
	}
	neverRotated := func(is func(*events.Change)) func(*events.Change) {
		return func(c *events.Change) {
			is(c)
			c.Keys["password"] = events.Key{Fingerprint: fp("2")}
		}
	}
	owed := entryOf(workload.Owed(workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid", Scope: workload.ScopeOf(nil)}))
	testDecide(t, []decideTest{
		{name: "keys no longer count", state: recordOf("b", "100", "uid"), change: annotated, want: AlreadyRolled},
		{name: "keys no longer count, and the workload waited for one of them", state: owed, change: neverRotated(annotated), want: KeysNotConsumed, records: workload.NoVersion},
		{name: "keys count again", state: recordAt("80", all, ignoring), change: countsAgain, want: KeysNotConsumed},
		{
			name: "keys count again, and nothing else has ever changed", state: recordAt(workload.NoVersion, all, neverRotated(ignoring)),
			change: neverRotated(countsAgain), want: KeysNotConsumed,
		},
		{
			name: "keys count again that have changed since they were recorded", state: recordOf("a", workload.NoVersion, "uid"),
			change: neverRotated(countsAgain), want: KeysNotConsumed,
		},
		{
			name: "keys count again, and one changes", state: recordAt("80", all, ignoring), want: Changed,
			change: func(c *events.Change) {
				countsAgain(c)
				c.ResourceVersion, c.Keys["ttl"] = "120", events.Key{Fingerprint: fp("9"), ChangedAt: "120"}
			},
		},
		{
			name: "a workload names a key that has changed before", rollOn: "auto, secret/db#ttl", change: ignoring, memory: cameLive,
			state: states(recordAt("80", all, ignoring), func(w *workload.Workload) {
				earlier := workloadOf(t, "auto", wholeDB, func(e *workload.Workload) { e.Rolled = w.Rolled })
				w.Edited = written.Add(time.Hour)
				w.LinkAfter(earlier, "105")
			}),
			want: BeforeOptIn, records: "100",
		},
	})
}

// What a workload waits for is not forgotten because other keys change, whose changes do not count.
func TestANoteOfKeysThatCountOutlastsTheOthers(t *testing.T) {
	ignoring := staticCreds(events.IgnoredAsStaticCreds)
	seen := viewOf(changeOf(ignoring), workload.Want{})
	owed := workload.Owed(workload.RolledFor{Fingerprint: seen.fingerprint, Version: "80", UID: "uid", Scope: seen.scope})
	testDecide(t, []decideTest{{
		name: "the stream has lost when the password changed", state: entryOf(owed), want: Changed,
		change: func(c *events.Change) {
			ignoring(c)
			c.Keys["password"] = events.Key{Fingerprint: fp("2")}
		},
	}})
}

func TestADecisionNamesTheKeysThatDoNotCount(t *testing.T) {
	for _, tt := range []struct {
		name, rollOn string
		ref          workload.Reference
		want         []string
	}{
		{"of all that the pods read", "auto", wholeDB, []string{"_raw", "ttl"}},
		{"but for those that the workload names", "auto, secret/db#_raw", wholeDB, []string{"ttl"}},
		{"and those that it excludes", "auto, !secret/db#user", wholeDB, []string{"_raw", "ttl", "user"}},
		{
			"and those of the keys that they name", "auto, !secret/db#password",
			workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password", "ttl"}},
			[]string{"password", "ttl"},
		},
		{"but for those that nobody reads", "auto", passwordDB, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			decision := decisionOf(workloadOf(t, tt.rollOn, tt.ref, nil), changeOf(staticCreds(events.IgnoredByAnnotation)), nil)
			if diff := cmp.Diff(tt.want, decision.Uncounted); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
