package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheCreationOfASourceRollsWhomThePolicySays(t *testing.T) {
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	optionalKey := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
	required := workload.Reference{Kind: events.KindSecret, Name: "db"}
	requiredKey := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db", Optional: true}
	created := func(c *events.Change) {
		c.Created, c.CreatedAt, c.Previous = true, "100", ""
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	// It was deleted and created with the content that it had.
	again := func(c *events.Change) {
		c.Verb, c.UID, c.ResourceVersion, c.ChangedAt = events.VerbObserved, "another", "140", "90"
		c.Previous, c.Changed = c.Fingerprint, nil
		c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "90"}
	}
	// The same, and it had not changed since the cluster was first watched.
	againUnchanged := func(c *events.Change) {
		again(c)
		c.ChangedAt, c.Keys["password"] = "", events.Key{Fingerprint: fp("2")}
	}
	// It was gone, and what it contains has changed before.
	returned := func(c *events.Change) {
		again(c)
		c.CreatedAt = "140"
	}
	returnedUnchanged := func(c *events.Change) {
		againUnchanged(c)
		c.CreatedAt = "140"
	}
	// It was gone, and is back with another user, but the same password.
	returnedWithOther := func(c *events.Change) {
		c.Created, c.UID, c.ResourceVersion, c.ChangedAt, c.CreatedAt = true, "another", "140", "140", "140"
		c.Changed = []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "140"}}
	}
	otherContent := func(c *events.Change) {
		c.Created, c.UID, c.ResourceVersion, c.ChangedAt = true, "another", "140", "140"
	}
	observed := func(c *events.Change) {
		c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	found := func(c *events.Change) {
		observed(c)
		c.CreatedAt, c.Since = "100", written
	}
	inStore := func(c *events.Change) {
		c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
		c.Verb, c.Previous, c.UID = events.VerbObserved, c.Fingerprint, "bao"
	}
	serving := func(w *workload.Workload) { w.ServingSince = "99" }
	has := func(ref workload.Reference) func(*workload.Workload) {
		record := decisionOf(workloadOf(t, "auto", ref, nil), changeOf(nil), nil).Record
		record.Version = "90"
		return func(w *workload.Workload) { w.Rolled = map[string]workload.RolledFor{"secret/db": record} }
	}
	hadOther := func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "80", UID: "earlier"}}
	}
	newer := func(w *workload.Workload) {
		has(optional)(w)
		w.TemplateVersion = "150"
	}
	// The pods started before the source was there again, and after it was deleted.
	startedBetween := func(w *workload.Workload) { w.TemplateVersion = "120" }
	startedAfter := func(w *workload.Workload) { w.TemplateVersion = "150" }
	tests := []struct {
		name                string
		ref                 workload.Reference
		state               func(*workload.Workload)
		change              func(*events.Change)
		auto, always, never Reason
	}{
		{"a source appears that the pods started without", optional, nil, created, Appeared, Appeared, CreationIgnored},
		{"the same, read by a key", optionalKey, nil, created, Appeared, Appeared, CreationIgnored},
		{"a source appears that the pods waited for", required, nil, created, PodsWaited, PodsWaited, PodsWaited},
		{"the same, read by a key", requiredKey, nil, created, KeysNotConsumed, KeysNotConsumed, KeysNotConsumed},
		{"a source comes back that the pods need and had before", required, serving, created, Changed, Changed, CreationIgnored},
		{"it was there shortly before the installation", optional, nil, found, Appeared, Appeared, CreationIgnored},
		{"it was there before the installation", optional, nil, observed, FirstSeen, FirstSeen, FirstSeen},
		{"it changes", optional, has(optional), func(c *events.Change) { c.Fingerprint = fp("c") }, Changed, Changed, Changed},
		{"it is created anew with other content", optional, has(optional), func(c *events.Change) {
			otherContent(c)
			c.Fingerprint = fp("c")
		}, Changed, Changed, Changed},
		{"it is created after a day with other content", optional, hadOther, created, Appeared, Appeared, Changed},
		{"it is created anew with the content that it had", optional, has(optional), again, SameContent, Recreated, SameContent},
		{"the same, read by a key", optionalKey, has(optionalKey), again, SameContent, Recreated, SameContent},
		{"the same, and the pods need it", requiredKey, has(requiredKey), again, SameContent, Recreated, SameContent},
		{"the same, and it never changed", optional, has(optional), againUnchanged, FirstSeen, Recreated, FirstSeen},
		{"the same, and nothing is recorded", required, nil, againUnchanged, FirstSeen, Recreated, FirstSeen},
		{"the same, and the workload was changed since", optional, newer, again, SameContent, PodsNewer, SameContent},
		{"it comes back after the pods started without it", optional, startedBetween, returned, Appeared, Recreated, PodsNewer},
		{"the same, and it never changed", optional, startedBetween, returnedUnchanged, Appeared, Recreated, CreationIgnored},
		{"the same, read by a key", optionalKey, startedBetween, returned, Appeared, Recreated, PodsNewer},
		{"it comes back while a change waits that it had before", optional, nil, returned, Appeared, Recreated, Changed},
		{"it comes back before the pods start", optional, startedAfter, returned, PodsNewer, PodsNewer, PodsNewer},
		{"it comes back with the content that the pods have", optional, has(optional), returned, SameContent, Recreated, SameContent},
		{"the same, and it never changed", optional, has(optional), returnedUnchanged, SameContent, Recreated, SameContent},
		{"it comes back, and the pods waited for it", required, startedBetween, returnedUnchanged, FirstSeen, Recreated, FirstSeen},
		{"the same, and the pods have it", required, serving, returnedUnchanged, FirstSeen, Recreated, FirstSeen},
		{"it comes back with other content", optional, startedBetween, returnedWithOther, Appeared, Appeared, CreationIgnored},
		{"the same, but not in the key that is read", optionalKey, startedBetween, returnedWithOther, Appeared, Appeared, CreationIgnored},
		{"the same, and the pods waited for it", required, startedBetween, returnedWithOther, PodsWaited, PodsWaited, PodsWaited},
		{"the same, and the pods have had the earlier one", required, serving, returnedWithOther, Changed, Changed, CreationIgnored},
		{"the same, but not in the key that they read", requiredKey, serving, returnedWithOther, KeysNotConsumed, KeysNotConsumed, KeysNotConsumed},
		{"a secret in a store is no object", store, nil, inStore, Changed, Changed, Changed},
	}
	for _, test := range tests {
		for create, want := range map[Creation]Reason{CreateAuto: test.auto, CreateAlways: test.always, CreateNever: test.never} {
			t.Run(test.name+", "+string(create), func(t *testing.T) {
				w := workloadOf(t, "auto, openbao", test.ref, func(w *workload.Workload) {
					w.Created = written.AddDate(0, 0, -1)
					if test.state != nil {
						test.state(w)
					}
				})
				change, policy := changeOf(test.change), Policy{Create: create}
				decision := Decide(w, change, justCame, policy)
				if decision.Reason != want {
					t.Fatalf("got %s, want %s", decision.Reason, want)
				}
				if decision.Reason.Action() == Skip {
					return
				}
				w.Rolled = map[string]workload.RolledFor{change.Source.String(): decision.Record}
				if next := Decide(w, change, justCame, policy); next.Reason.Action() != Skip {
					t.Errorf("the event comes again: got %s, want that it is skipped", next.Reason)
				}
			})
		}
	}
}

func TestASourceWhoseCreationWasIgnoredRollsWithItsNextChange(t *testing.T) {
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	never := Policy{Create: CreateNever}
	w := workloadOf(t, "auto", optional, nil)
	ignored := Decide(w, changeOf(func(c *events.Change) {
		c.Created, c.CreatedAt, c.ChangedAt, c.ResourceVersion, c.Fingerprint = true, "90", "90", "90", fp("a")
	}), justCame, never)
	if ignored.Reason != CreationIgnored {
		t.Fatalf("got %s, want %s", ignored.Reason, CreationIgnored)
	}
	w.Rolled = map[string]workload.RolledFor{"secret/db": ignored.Record}
	if got := Decide(w, changeOf(func(c *events.Change) { c.CreatedAt = "90" }), justCame, never).Reason; got != Changed {
		t.Errorf("got %s, want %s", got, Changed)
	}
}
