package actuate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheOutcomeOfAllThatIsPendingNamesTheNewestAsItsCause(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Refs = append(w.Refs, workload.Reference{Kind: events.KindConfigMap, Name: "app"})
	})
	p := pendingOf(w, changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "99", "99" }), changeOf(func(c *events.Change) { c.Source = app }))
	outcomes := outcomes{cluster: "demo", now: testOptions().Now}
	got := outcomes.held(t.Context(), w, p, decisionsOf(w, p), obstacle{reason: plan.Limit})
	want := events.Outcome{
		Cluster: "demo", Verb: events.VerbHeld, ResourceVersion: "50", Time: written, Cause: "uid/100", Workload: w.ID,
		Reason: "limit-reached", Message: plan.Limit.Sentence(),
		Sources: []events.OutcomeSource{
			{Source: "configmap/app", Fingerprint: fp("b"), ResourceVersion: "100", Keys: []string{"password"}, Event: "uid/100"},
			{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "99", Keys: []string{"password"}, Event: "uid/99"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
