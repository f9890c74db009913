package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

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
		{name: "the pods cannot start without it", ref: required, change: deleted, want: SourceNeeded},
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
