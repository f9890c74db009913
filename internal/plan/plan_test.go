package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestPlanGivesTheReasonForEveryCase(t *testing.T) {
	whole := workload.Reference{Kind: events.KindSecret, Name: "db"}
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	user := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"user"}, Required: []string{"user"}}
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	pulled := workload.Reference{Kind: events.KindSecret, Name: "db", ByPull: true}
	rolledFor := func(letter, version, uid string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp(letter), Version: version, UID: uid}}
		}
	}
	serving := func(since string) func(*workload.Workload) {
		return func(w *workload.Workload) { w.ServingSince = since }
	}
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db"}
	created := func(c *events.Change) {
		c.Created, c.CreatedAt, c.Previous = true, "100", ""
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	// Another key has changed since the source was created.
	changedSince := func(c *events.Change) {
		c.CreatedAt, c.Changed = "95", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}
	before := changeOf(func(c *events.Change) {
		c.ResourceVersion, c.ChangedAt, c.Fingerprint = "90", "", fp("b")
	})

	tests := []struct {
		name   string
		rollOn string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		from   *events.Change
		want   Reason
	}{
		{name: "content that is read has changed", rollOn: "auto", ref: whole, want: Changed},
		{name: "but the source is on hold", rollOn: "auto", ref: whole, change: func(c *events.Change) { c.Hold = "migration" }, want: SourceOnHold},
		{
			name: "it is on hold, and nothing that is read has changed", rollOn: "auto", ref: user,
			change: func(c *events.Change) { c.Hold = "migration" }, want: KeysNotConsumed,
		},
		{
			name: "it is on hold, and the pods are newer", rollOn: "auto", ref: whole, state: func(w *workload.Workload) { w.TemplateVersion = "200" },
			change: func(c *events.Change) { c.Hold = "migration" }, want: PodsNewer,
		},
		{
			name: "it is put on hold after the change, which is another event", rollOn: "auto", ref: whole,
			change: func(c *events.Change) {
				c.Verb, c.ResourceVersion, c.Changed, c.Hold = events.VerbObserved, "120", nil, "migration"
			},
			want: SourceOnHold,
		},
		{
			name: "the hold is taken off, which is another event", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "130", nil }, want: Changed,
		},
		{
			name: "the hold is taken off from what was rolled", rollOn: "auto", ref: whole, state: rolledFor("b", "100", "uid"),
			change: func(c *events.Change) { c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "130", nil }, want: KeysNotConsumed,
		},
		{name: "a key that is read has changed", rollOn: "auto", ref: password, want: Changed},
		{name: "a key that is not read has changed", rollOn: "auto", ref: user, want: KeysNotConsumed},
		{name: "only other keys are asked for", rollOn: "secret/db#user", ref: whole, want: KeysNotConsumed},
		{name: "the key that is asked for is not read", rollOn: "secret/db#password", ref: user, want: KeysNotConsumed},
		{
			name: "a key that is read changed earlier, in an event that this one superseded", rollOn: "auto", ref: password,
			change: func(c *events.Change) {
				c.Changed = []string{"user"}
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: Changed,
		},
		{
			name: "the same, and the workload was rolled for that event", rollOn: "auto", ref: password, state: rolledFor("9", "95", "uid"),
			change: func(c *events.Change) {
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: KeysNotConsumed,
		},
		{name: "its own rollout was aborted", rollOn: "auto", ref: whole, state: func(w *workload.Workload) { w.Aborted = true }, want: Aborted},
		{
			name: "the same, of a template that is newer than the change", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) {
				w.Aborted, w.TemplateVersion, w.Progress = true, "200", workload.Progress{State: workload.Failed, Pods: 3}
			},
			want: Aborted,
		},
		{
			name: "the same, and the workload was rolled for the change", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) {
				rolledFor("b", "100", "uid")(w)
				w.Aborted = true
			},
			want: AlreadyRolled,
		},
		{name: "nothing asks for the source", rollOn: "configmaps", ref: whole, want: NotOptedIn},
		{name: "the source is not referenced", rollOn: "auto", want: NotOptedIn},
		{name: "the source is named and not referenced", rollOn: "secret/db", want: Changed},
		{name: "the source is excluded", rollOn: "auto, !secret/db", ref: whole, want: Excluded},
		{name: "the source is only pulled with", rollOn: "auto", ref: pulled, want: PulledOnly},
		{
			name: "the source says ignore", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Ignore = true }, want: SourceIgnored,
		},
		{
			name: "the source was deleted", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb = events.VerbDeleted }, want: SourceDeleted,
		},
		{
			name: "the source was never seen to change", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb, c.ChangedAt, c.Keys = events.VerbObserved, "", nil }, want: FirstSeen,
		},
		{
			name: "an event of the verb observed tells of an earlier change", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb, c.ChangedAt, c.ResourceVersion = events.VerbObserved, "95", "110" }, want: Changed,
		},
		{name: "the workload was rolled for this change", rollOn: "auto", ref: whole, state: rolledFor("b", "100", "uid"), want: AlreadyRolled},
		{name: "the workload was rolled for a later change", rollOn: "auto", ref: whole, state: rolledFor("c", "101", "uid"), want: Stale},
		{name: "the numbers of resourceVersions count, not their digits", rollOn: "auto", ref: whole, state: rolledFor("a", "99", "uid"), want: Changed},
		{name: "the workload was rolled for this content before", rollOn: "auto", ref: whole, state: rolledFor("b", "80", "uid"), want: SameContent},
		{
			name: "the record is of another object of this name, as after a restore", rollOn: "auto", ref: whole,
			state: rolledFor("a", "999999", "elsewhere"), want: Changed,
		},
		{
			name: "the record is of another object of this name with the same content", rollOn: "auto", ref: whole,
			state: rolledFor("b", "999999", "elsewhere"), want: SameContent,
		},
		{name: "the content is again what it was", rollOn: "auto", ref: whole, from: &before, want: ChangedBack},
		{name: "what was before does not count where there is a record", rollOn: "auto", ref: whole, from: &before, state: rolledFor("a", "80", "uid"), want: Changed},
		{
			name: "a key that the pods need is gone", rollOn: "auto", ref: password,
			change: func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }, want: KeyMissing,
		},
		{
			name: "a key that the pods read if it is there is gone", rollOn: "auto",
			ref:    workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }, want: Changed,
		},
		{name: "the template changed later", rollOn: "auto", ref: whole, state: func(w *workload.Workload) { w.TemplateVersion = "101" }, want: PodsNewer},
		{
			name: "the template changed later by its resourceVersion, and earlier by the clock", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) {
				w.TemplateVersion, w.TemplateWritten = "101", written.Add(-clockMargin-time.Second)
			}, want: Changed,
		},
		{
			name: "the template changed later by its resourceVersion, and at about the same time by the clock", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) {
				w.TemplateVersion, w.TemplateWritten = "101", written.Add(-clockMargin)
			}, want: PodsNewer,
		},
		{name: "the template changed earlier", rollOn: "auto", ref: whole, state: func(w *workload.Workload) { w.TemplateVersion = "99" }, want: Changed},
		{
			name: "the workload was created well after the write", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) { w.Created = written.Add(clockMargin + time.Second) }, want: PodsNewer,
		},
		{
			name: "the workload was created at about the time of the write", rollOn: "auto", ref: whole,
			state: func(w *workload.Workload) { w.Created = written.Add(clockMargin) }, want: Changed,
		},
		{name: "the source appeared and the pods waited for it", rollOn: "auto", ref: whole, change: created, want: PodsWaited},
		{name: "the same, and they had become available after it", rollOn: "auto", ref: whole, change: created, state: serving("101"), want: PodsWaited},
		{name: "the source came back after pods had been available", rollOn: "auto", ref: whole, change: created, state: serving("99"), want: Changed},
		{name: "the same, and they read one key of it", rollOn: "auto", ref: password, change: created, state: serving("99"), want: Changed},
		{name: "the same, in a secret store, whose times are no resourceVersions", rollOn: "auto", ref: store, change: func(c *events.Change) {
			created(c)
			c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
		}, state: serving("99"), want: PodsWaited},
		{name: "the source appeared and the pods did not wait", rollOn: "auto", ref: optional, change: created, want: Appeared},
		{name: "the source appeared with the key that the pods need", rollOn: "auto", ref: password, change: created, want: KeysNotConsumed},
		{
			name: "the source appeared with a key that the pods read if it is there", rollOn: "auto",
			ref:    workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: created, want: Appeared,
		},
		{name: "a key that is not read has changed since the source appeared", rollOn: "auto", ref: password, change: changedSince, want: KeysNotConsumed},
		{
			name: "the same, and nobody was told yet that the source appeared", rollOn: "auto",
			ref:    workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: changedSince, want: Appeared,
		},
		{name: "the source appeared and is only named", rollOn: "secret/db", change: created, want: Appeared},
		{
			name: "the source was created again with other content", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Created = true }, want: Changed,
		},
		{
			name: "a source with too many keys to list has changed", rollOn: "auto", ref: password,
			change: func(c *events.Change) { c.Keys, c.Truncated, c.Changed = nil, true, nil }, want: Changed,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, test.rollOn, test.ref, test.state)
			if got := decisionOf(w, changeOf(test.change), test.from).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatARollRecordsMakesTheSameEventASkip(t *testing.T) {
	for _, ref := range []workload.Reference{
		{Kind: events.KindSecret, Name: "db"},
		{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}},
		{Kind: events.KindSecret, Name: "db", Keys: []string{"password", "user"}},
	} {
		w := workloadOf(t, "auto", ref, nil)
		first := decisionOf(w, changeOf(nil), nil)
		if first.Reason != Changed {
			t.Fatalf("keys %v: got %s, want %s", ref.Keys, first.Reason, Changed)
		}
		w.Rolled = map[string]workload.RolledFor{"secret/db": first.Record}
		if again := decisionOf(w, changeOf(nil), nil); again.Reason != AlreadyRolled {
			t.Errorf("keys %v: got %s, want %s", ref.Keys, again.Reason, AlreadyRolled)
		}
	}
}

func TestEveryReasonIsToldByOneNameAndOneSentence(t *testing.T) {
	names := make(map[string]Reason)
	for reason := Unknown; reason <= WorkloadGone; reason++ {
		if reason.String() == "" || reason.Sentence() == "" {
			t.Errorf("reason %d has no name or no sentence", reason)
		}
		if other, taken := names[reason.String()]; taken {
			t.Errorf("reasons %d and %d are both called %s", other, reason, reason)
		}
		names[reason.String()] = reason
	}
	if len(names) != len(verdicts) {
		t.Errorf("verdicts: got %d, want one for each of %d reasons", len(verdicts), len(names))
	}
}

func TestATimeThatIsNotKnownMakesNoWorkloadNewer(t *testing.T) {
	w := workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db"}, func(w *workload.Workload) { w.Created = written.Add(time.Hour) })
	if got := decisionOf(w, changeOf(func(c *events.Change) { c.WrittenAt = time.Time{} }), nil).Reason; got != Changed {
		t.Errorf("got %s, want %s", got, Changed)
	}
}
