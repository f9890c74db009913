package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheCreationOfASourceRollsWhomThePolicySays(t *testing.T) {
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db", Optional: true}
	// It is created anew, and had not changed since the cluster was first watched.
	againUnchanged := func(c *events.Change) {
		isRecreated(c)
		c.ChangedAt, c.Keys["password"] = "", events.Key{Fingerprint: fp("2")}
	}
	// It was gone, and what it contains has changed before.
	returned := func(c *events.Change) {
		isRecreated(c)
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
	found := func(c *events.Change) {
		isFirstSeen(c)
		c.CreatedAt, c.Since = "100", written
	}
	inStore := func(c *events.Change) {
		c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
		c.Verb, c.Previous, c.UID = events.VerbObserved, c.Fingerprint, "bao"
	}
	has := func(ref workload.Reference) func(*workload.Workload) {
		record := decisionOf(workloadOf(t, "auto", ref, nil), changeOf(nil), nil).Record
		record.Version = "90"
		return entryOf(record)
	}
	newer := states(has(optionalDB), func(w *workload.Workload) { w.TemplateVersion = "150" })
	// The pods started before the source was there again, and after it was deleted.
	startedBetween := func(w *workload.Workload) { w.TemplateVersion = "120" }
	tests := []struct {
		name                string
		ref                 workload.Reference
		state               func(*workload.Workload)
		change              func(*events.Change)
		auto, always, never Reason
	}{
		{"a source appears that the pods started without", optionalDB, nil, isCreated, Appeared, Appeared, CreationIgnored},
		{"the same, read by a key", optionalKey, nil, isCreated, Appeared, Appeared, CreationIgnored},
		{"a source appears that the pods waited for", wholeDB, nil, isCreated, PodsWaited, PodsWaited, PodsWaited},
		{"a source comes back that the pods need and had before", wholeDB, serving("99"), isCreated, Changed, Changed, CreationIgnored},
		{"it was there shortly before the installation", optionalDB, nil, found, Appeared, Appeared, CreationIgnored},
		{"it is created after a day with other content", optionalDB, recordOf("a", "80", "earlier"), isCreated, Appeared, Appeared, Changed},
		{"it is created anew with the content that it had", optionalDB, has(optionalDB), isRecreated, SameContent, Appeared, SameContent},
		{"the same, and it never changed", optionalDB, has(optionalDB), againUnchanged, FirstSeen, Appeared, FirstSeen},
		{"the same, and the workload was changed since", optionalDB, newer, isRecreated, SameContent, PodsNewer, SameContent},
		{"it comes back after the pods started without it", optionalDB, startedBetween, returned, Appeared, Appeared, PodsNewer},
		{"the same, and it never changed", optionalDB, startedBetween, returnedUnchanged, Appeared, Appeared, CreationIgnored},
		{
			"the same, and the workload was rolled for it", optionalDB, states(has(optionalDB), startedBetween), returned,
			SameContent, Appeared, SameContent,
		},
		{
			"the same, and the workload was rolled for what it had before", optionalDB, states(recordOf("a", "80", "uid"), startedBetween), returned,
			Appeared, Appeared, Changed,
		},
		{"the same, and the workload waits for it", optionalDB, states(owesTo("uid"), startedBetween), returned, Appeared, Appeared, Changed},
		{"it comes back, and the pods waited for it", wholeDB, startedBetween, returnedUnchanged, FirstSeen, Appeared, FirstSeen},
		{"it comes back with other content", optionalDB, startedBetween, returnedWithOther, Appeared, Appeared, CreationIgnored},
		{"the same, but not in the key that is read", optionalKey, startedBetween, returnedWithOther, Appeared, Appeared, CreationIgnored},
		{"the same, and the pods waited for it", wholeDB, startedBetween, returnedWithOther, PodsWaited, PodsWaited, PodsWaited},
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
				if got := Decide(w, changeOf(test.change), justCame, Policy{Create: create}).Reason; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

func TestASourceWhoseCreationWasIgnoredRollsWithItsNextChange(t *testing.T) {
	never := Policy{Create: CreateNever}
	w := workloadOf(t, "auto", optionalDB, nil)
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
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db", Optional: true}
	deleted := func(c *events.Change) { c.Verb, c.Time = events.VerbDeleted, written.Add(time.Hour) }
	madeLater := func(w *workload.Workload) {
		w.TemplateVersion, w.TemplateWritten = "90", written.Add(time.Hour+clockMargin+time.Second)
		w.Progress = workload.Progress{State: workload.Progressing}
	}
	tests := []struct {
		name   string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		off    bool
		want   Reason
	}{
		{name: "the pods can start without it", ref: optionalDB, change: deleted, want: Deleted},
		{name: "the pods were rolled for its last content", ref: optionalDB, state: recordOf("b", "100", "uid"), change: deleted, want: Deleted},
		{name: "the pods cannot start without it", ref: wholeDB, change: deleted, want: SourceDeleted},
		{name: "the operator has not asked for it", ref: optionalDB, change: deleted, off: true, want: SourceDeleted},
		{
			name: "it is a secret in a store", ref: store, want: SourceDeleted,
			change: func(c *events.Change) {
				deleted(c)
				c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
			},
		},
		{
			name: "the workload was rolled for an earlier deletion of the name", ref: optionalDB, change: deleted, want: AlreadyRolled,
			state: entryOf(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("a"), Version: "80", UID: "earlier"})),
		},
		{name: "rolls for it were taken back time and again", ref: optionalDB, state: revertedAt("100", RevertRetries+1), change: deleted, want: Reverted},
		{name: "the template was changed well after it", ref: optionalDB, state: madeLater, change: deleted, want: PodsNewer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto, openbao, secret/db", test.ref, test.state)
			if got := Decide(w, changeOf(test.change), justCame, Policy{Delete: !test.off}).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
