package plan

import (
	"testing"
	"time"

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
		{"it is created anew with the content that it had", optional, has(optional), again, SameContent, Appeared, SameContent},
		{"the same, read by a key", optionalKey, has(optionalKey), again, SameContent, Appeared, SameContent},
		{"the same, and the pods need it", requiredKey, has(requiredKey), again, SameContent, Appeared, SameContent},
		{"the same, and it never changed", optional, has(optional), againUnchanged, FirstSeen, Appeared, FirstSeen},
		{"the same, and nothing is recorded", required, nil, againUnchanged, FirstSeen, Appeared, FirstSeen},
		{"the same, and the workload was changed since", optional, newer, again, SameContent, PodsNewer, SameContent},
		{"it comes back after the pods started without it", optional, startedBetween, returned, Appeared, Appeared, PodsNewer},
		{"the same, and it never changed", optional, startedBetween, returnedUnchanged, Appeared, Appeared, CreationIgnored},
		{"the same, read by a key", optionalKey, startedBetween, returned, Appeared, Appeared, PodsNewer},
		{"it comes back while a change waits that it had before", optional, nil, returned, Appeared, Appeared, Changed},
		{"it comes back before the pods start", optional, startedAfter, returned, PodsNewer, PodsNewer, PodsNewer},
		{"it comes back with the content that the pods have", optional, has(optional), returned, SameContent, Appeared, SameContent},
		{"the same, and it never changed", optional, has(optional), returnedUnchanged, SameContent, Appeared, SameContent},
		{"it comes back, and the pods waited for it", required, startedBetween, returnedUnchanged, FirstSeen, Appeared, FirstSeen},
		{"the same, and the pods have it", required, serving, returnedUnchanged, FirstSeen, Appeared, FirstSeen},
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

func TestTheDeletionOfASourceRollsWhoCanStartWithoutIt(t *testing.T) {
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	optionalKey := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
	required := workload.Reference{Kind: events.KindSecret, Name: "db"}
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db", Optional: true}
	deleted := func(c *events.Change) { c.Verb, c.Time = events.VerbDeleted, written.Add(time.Hour) }
	record := func(entry workload.RolledFor) func(*workload.Workload) {
		return func(w *workload.Workload) { w.Rolled = map[string]workload.RolledFor{"secret/db": entry} }
	}
	rolledFor := workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid"}
	reverted := func(count int) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Reverted = map[string]workload.Reverted{"secret/db": {Count: count, Template: w.TemplateID(), Version: "100", UID: "uid"}}
		}
	}
	made := func(after time.Duration, pods int32) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.TemplateVersion, w.TemplateWritten = "90", written.Add(time.Hour+after)
			w.Progress = workload.Progress{State: workload.Progressing, Pods: pods}
		}
	}
	tests := []struct {
		name   string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		off    bool
		want   Reason
	}{
		{name: "the pods can start without it", ref: optional, change: deleted, want: Deleted},
		{name: "the same, read by a key", ref: optionalKey, change: deleted, want: Deleted},
		{name: "the pods were rolled for its last content", ref: optional, state: record(rolledFor), change: deleted, want: Deleted},
		{name: "the workload only names it", change: deleted, want: Deleted},
		{name: "the pods cannot start without it", ref: required, change: deleted, want: SourceDeleted},
		{name: "the operator has not asked for it", ref: optional, change: deleted, off: true, want: SourceDeleted},
		{
			name: "it was ignored", ref: optional, want: SourceIgnored,
			change: func(c *events.Change) {
				deleted(c)
				c.Ignore = true
			},
		},
		{
			name: "it is a secret in a store", ref: store, want: SourceDeleted,
			change: func(c *events.Change) {
				deleted(c)
				c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
			},
		},
		{
			name: "the workload was rolled for an earlier deletion of the name", ref: optional, change: deleted, want: AlreadyRolled,
			state: record(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("a"), Version: "80", UID: "earlier"})),
		},
		{name: "a roll for it was taken back", ref: optional, state: reverted(1), change: deleted, want: Deleted},
		{name: "rolls for it were taken back time and again", ref: optional, state: reverted(RevertRetries + 1), change: deleted, want: Reverted},
		{name: "the template was changed well after it", ref: optional, state: made(clockMargin+time.Second, 0), change: deleted, want: PodsNewer},
		{name: "the same, and its pods are being replaced", ref: optional, state: made(clockMargin+time.Second, 3), change: deleted, want: PodsStarting},
		{name: "the template was changed at about the same time", ref: optional, state: made(clockMargin, 0), change: deleted, want: Deleted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto, openbao, secret/db", test.ref, test.state)
			policy, change := Policy{Delete: !test.off}, changeOf(test.change)
			decision := Decide(w, change, justCame, policy)
			if decision.Reason != test.want {
				t.Fatalf("got %s, want %s", decision.Reason, test.want)
			}
			if action := decision.Reason.Action(); action != Roll && action != Record {
				return
			}
			w.Rolled = map[string]workload.RolledFor{change.Source.String(): decision.Record}
			if again := Decide(w, change, justCame, policy); again.Reason != AlreadyRolled {
				t.Errorf("the event comes again: got %s, want %s", again.Reason, AlreadyRolled)
			}
		})
	}
}

func TestASourceThatIsBackAfterItsDeletionRolledAppears(t *testing.T) {
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
	// The roll for the deletion has a template that is newer than the last change of the content.
	rolled := func(w *workload.Workload) {
		gone := changeOf(func(c *events.Change) { c.Verb = events.VerbDeleted })
		w.Rolled = map[string]workload.RolledFor{"secret/db": Decide(w, gone, justCame, Policy{Delete: true}).Record}
		w.TemplateVersion = "130"
	}
	back := func(uid string) func(*events.Change) {
		return func(c *events.Change) {
			c.Verb, c.UID, c.ResourceVersion, c.Previous, c.Changed = events.VerbObserved, uid, "140", c.Fingerprint, nil
		}
	}
	otherContent := func(c *events.Change) {
		c.Created, c.UID, c.ResourceVersion, c.ChangedAt, c.Fingerprint = true, "another", "140", "140", fp("c")
	}
	// It was created and another key changed before that was decided.
	changedSince := func(c *events.Change) {
		c.UID, c.ResourceVersion, c.ChangedAt, c.Fingerprint, c.Changed = "another", "150", "150", fp("c"), []string{"user"}
		c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "150"}
	}
	tests := []struct {
		name                string
		ref                 workload.Reference
		change              func(*events.Change)
		auto, always, never Reason
	}{
		{"with the content that it had", optional, back("another"), Appeared, Appeared, CreationIgnored},
		{"the same, read by a key", password, back("another"), Appeared, Appeared, CreationIgnored},
		{"as the same object, which was out of scope", optional, back("uid"), Appeared, Appeared, CreationIgnored},
		{"with other content", optional, otherContent, Appeared, Appeared, CreationIgnored},
		{"with a change since of a key that is not read", password, changedSince, Changed, Changed, Changed},
	}
	for _, test := range tests {
		for create, want := range map[Creation]Reason{CreateAuto: test.auto, CreateAlways: test.always, CreateNever: test.never} {
			t.Run(test.name+", "+string(create), func(t *testing.T) {
				w := workloadOf(t, "auto", test.ref, nil)
				rolled(w)
				policy, change := Policy{Create: create, Delete: true}, changeOf(test.change)
				decision := Decide(w, change, justCame, policy)
				if decision.Reason != want {
					t.Fatalf("got %s, want %s", decision.Reason, want)
				}
				w.Rolled["secret/db"] = decision.Record
				if again := Decide(w, change, justCame, policy).Reason; again.Action() != Skip {
					t.Errorf("the event comes again: got %s, want a skip", again)
				}
			})
		}
	}
}

func TestADeletionRollsWhoOptedInBeforeIt(t *testing.T) {
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	deleted := func(after time.Duration) events.Change {
		return changeOf(func(c *events.Change) { c.Verb, c.Time = events.VerbDeleted, written.Add(after) })
	}
	out := workloadOf(t, "auto", optional, func(w *workload.Workload) { w.OptIn = workload.OptIn{} })
	in := workloadOf(t, "auto", optional, func(w *workload.Workload) { w.Edited = written })
	in.LinkAfter(out, "90")
	// The one time is of the watcher's clock, and the other of the API server's: a roll too many loses nothing.
	for after, want := range map[time.Duration]Reason{-clockMargin - time.Second: SourceDeleted, -time.Second: Deleted, time.Second: Deleted} {
		if got := Decide(in, deleted(after), cameLive, Policy{Delete: true}).Reason; got != want {
			t.Errorf("deleted %s after it: got %s, want %s", after, got, want)
		}
	}
}
