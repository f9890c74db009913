package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheGateOfChangesIsClosedIfAllOfThemAreWithoutEnd(t *testing.T) {
	const first, later = `12 since 2026-03-14T15:00:00Z {"secret/db#ttl":"12 at 2026-03-14T15:09:00Z"}`,
		`30 since 2026-03-14T15:00:00Z {"secret/db#ttl":"14 at 2026-03-14T15:09:00Z","secretproviderclass/app":"4 at 2026-03-14T15:08:00Z"}`
	at := func(minute int) time.Time { return time.Date(2026, 3, 14, 15, minute, 0, 0, time.UTC) }
	ttl := Decision{Source: db, Reason: Changed, Keys: []string{"ttl"}, Writers: []string{"external-secrets", "pgo"}}
	class := Decision{Source: events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "app"}, Reason: Changed}
	password, back := ttl, Decision{Source: db, Reason: ChangedBack}
	password.Keys = []string{"password", "ttl"}
	tests := []struct {
		name  string
		rolls string
		doing []Decision
		state func(*workload.Workload)
		want  Gate
	}{
		{
			name: "one is, which nobody was told", rolls: first, doing: []Decision{back, ttl},
			want: Gate{Reason: Endless, End: at(19), Said: "secret/db (ttl), written by external-secrets and pgo"},
		},
		{
			name: "both are, and it ends with the first", rolls: later, doing: []Decision{ttl, class},
			want: Gate{
				Reason: Endless, End: at(18), Said: "secret/db (ttl), written by external-secrets and pgo; " +
					"secretproviderclass/app, whose provider may report versions that are not stable: name a secretKey for each object",
			},
		},
		{
			name: "one is, which people were told", rolls: later, doing: []Decision{ttl},
			want: Gate{Reason: Endless, End: at(49), IsTold: true, Said: "secret/db (ttl), written by external-secrets and pgo"},
		},
		{name: "another key has changed, too", rolls: first, doing: []Decision{password}},
		{name: "another source has changed, too", rolls: first, doing: []Decision{class, ttl}},
		{name: "nothing is to be rolled for", rolls: later, doing: []Decision{back}},
		{name: "the workload fails", rolls: first, doing: []Decision{ttl}, state: func(w *workload.Workload) { w.Progress.State = workload.Failed }},
		{
			name: "the workload has failed", rolls: first, doing: []Decision{ttl},
			state: func(w *workload.Workload) {
				w.Revision, w.Last = "r", workload.Last{Revision: "r", Failed: "timed-out"}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := webWith(t, map[string]string{"keyturn.dev/rolls": tt.rolls}, workload.Reading{MaxRollsPerHour: 100})
			if tt.state != nil {
				tt.state(w)
			}
			if diff := cmp.Diff(tt.want, GateOfChanges(w, tt.doing, written)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestADecisionNamesAllThatHasChangedSinceTheRecordAndWhoWritesIt(t *testing.T) {
	const before, after = "90", "95"
	tests := []struct {
		name          string
		keys          []string
		change        func(*events.Change)
		keysOf, wants []string
	}{
		{name: "all keys", keysOf: []string{"password", "user"}},
		{name: "those that the pods read", keys: []string{"password"}, keysOf: []string{"password"}},
		{
			name: "none that does not count", keysOf: []string{"user"},
			change: func(c *events.Change) {
				c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "100", Ignored: events.IgnoredByAnnotation}
			},
		},
		{
			name: "none that has changed before it counted again", keysOf: []string{"user"},
			change: func(c *events.Change) {
				c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "100", Since: "100"}
			},
		},
		{name: "none of a source that lists none", change: func(c *events.Change) { c.Keys, c.Changed, c.Truncated = nil, nil, true }},
		{
			name: "those that a source with more keys lists", keysOf: []string{"password", "user"},
			change: func(c *events.Change) {
				c.Truncated, c.Buckets = true, map[string]events.Key{"00": {Fingerprint: fp("6")}}
			},
		},
		{
			name: "its field managers", keysOf: []string{"password", "user"}, wants: []string{"a", "b"},
			change: func(c *events.Change) {
				c.Writers, c.Cause = []string{"a", "b"}, &events.Cause{Source: "externalsecret/db"}
			},
		},
		{
			name: "what is behind it", keysOf: []string{"password", "user"}, wants: []string{"externalsecret/db"},
			change: func(c *events.Change) { c.Cause = &events.Cause{Source: "externalsecret/db"} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db", Keys: tt.keys}, func(w *workload.Workload) {
				w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: before, UID: "uid"}}
			})
			decision := decisionOf(w, changeOf(func(c *events.Change) {
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: after}
				c.Keys["host"] = events.Key{Fingerprint: fp("5"), ChangedAt: before}
				if tt.change != nil {
					tt.change(c)
				}
			}), nil)
			if decision.Reason != Changed {
				t.Fatalf("the reason is %s", decision.Reason)
			}
			testkit.WantEqual(t, "keys and writers", [][]string{tt.keysOf, tt.wants}, [][]string{decision.Keys, decision.Writers})
		})
	}
}

func TestARollWithoutARecordNamesTheKeysOfTheLastChangeAlsoAfterAnEventWithoutOne(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	changed := changeOf(nil)
	observed := changeOf(func(c *events.Change) {
		c.Verb, c.ResourceVersion, c.Previous, c.Changed = events.VerbObserved, "101", "", nil
	})
	for _, now := range []events.Change{changed, observed} {
		decision := decisionOf(w, now, nil)
		if decision.Reason.Action() != Roll {
			t.Fatalf("%s: the reason is %s", now.Verb, decision.Reason)
		}
		if diff := cmp.Diff([]string{"password"}, decision.Keys); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", now.Verb, diff)
		}
	}
}
