package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestPlanGivesTheReasonForEveryCase(t *testing.T) {
	pulled := workload.Reference{Kind: events.KindSecret, Name: "db", ByPull: true}
	serving := func(since string) func(*workload.Workload) {
		return func(w *workload.Workload) { w.ServingSince = since }
	}
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db"}
	// Another key has changed since the source was created.
	changedSince := func(c *events.Change) {
		c.CreatedAt, c.Changed = "95", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}

	tests := []struct {
		name   string
		rollOn string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		want   Reason
	}{
		{name: "content that is read has changed", rollOn: "auto", ref: wholeDB, want: Changed},
		{
			name: "it is on hold, and the pods are newer", rollOn: "auto", ref: wholeDB, state: func(w *workload.Workload) { w.TemplateVersion = "200" },
			change: func(c *events.Change) { c.Hold = "migration" }, want: PodsNewer,
		},
		{
			name: "it is put on hold after the change, which is another event", rollOn: "auto", ref: wholeDB,
			change: func(c *events.Change) {
				c.Verb, c.ResourceVersion, c.Changed, c.Hold = events.VerbObserved, "120", nil, "migration"
			},
			want: SourceOnHold,
		},
		{
			name: "the hold is taken off from what was rolled", rollOn: "auto", ref: wholeDB, state: recordOf("b", "100", "uid"),
			change: func(c *events.Change) { c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "130", nil }, want: KeysNotConsumed,
		},
		{
			name: "a key that is read changed earlier, in an event that this one superseded", rollOn: "auto", ref: passwordDB,
			change: func(c *events.Change) {
				c.Changed = []string{"user"}
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: Changed,
		},
		{
			name: "its own rollout was aborted, and the workload was rolled for the change", rollOn: "auto", ref: wholeDB,
			state: func(w *workload.Workload) {
				recordOf("b", "100", "uid")(w)
				w.Aborted = true
			},
			want: AlreadyRolled,
		},
		{name: "the source is only pulled with", rollOn: "auto", ref: pulled, want: PulledOnly},
		{
			name: "the template changed later by its resourceVersion, and earlier by the clock", rollOn: "auto", ref: wholeDB,
			state: func(w *workload.Workload) {
				w.TemplateVersion, w.TemplateWritten = "101", written.Add(-clockMargin-time.Second)
			}, want: Changed,
		},
		{
			name: "the template changed later by its resourceVersion, and at about the same time by the clock", rollOn: "auto", ref: wholeDB,
			state: func(w *workload.Workload) {
				w.TemplateVersion, w.TemplateWritten = "101", written.Add(-clockMargin)
			}, want: PodsNewer,
		},
		{
			name: "the workload was created well after the write", rollOn: "auto", ref: wholeDB,
			state: func(w *workload.Workload) { w.Created = written.Add(clockMargin + time.Second) }, want: PodsNewer,
		},
		{name: "the source appeared, and the pods became available after it", rollOn: "auto", ref: wholeDB, change: isCreated, state: serving("101"), want: PodsWaited},
		{name: "a secret in a store came back after pods had been available: its times are no resourceVersions", rollOn: "auto", ref: store, change: func(c *events.Change) {
			isCreated(c)
			c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
		}, state: serving("99"), want: PodsWaited},
		{
			name: "a key that is not read has changed since the source appeared, of which nobody was told yet", rollOn: "auto",
			ref:    workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: changedSince, want: Appeared,
		},
		{name: "the source appeared and is only named", rollOn: "secret/db", change: isCreated, want: Appeared},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, test.rollOn, test.ref, test.state)
			if got := decisionOf(w, changeOf(test.change), nil).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEveryReasonIsToldByANameAndASentenceOfItsOwn(t *testing.T) {
	sentences := make(map[string]Reason)
	for reason := Unknown; reason <= WorkloadGone; reason++ {
		if reason.String() == "" || reason.Sentence() == "" {
			t.Errorf("reason %d has no name or no sentence", reason)
		}
		if other, taken := sentences[reason.Sentence()]; taken {
			t.Errorf("reasons %d and %d have the same sentence: %s", other, reason, reason.Sentence())
		}
		sentences[reason.Sentence()] = reason
	}
	if len(sentences) != len(verdicts) {
		t.Errorf("verdicts: got %d, want one for each of %d reasons", len(verdicts), len(sentences))
	}
}
