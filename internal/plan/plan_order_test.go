package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// A source that was found a short time after its creation, when the cluster was first watched, may have come after the pods.
func TestASourceThatIsFoundSoonAfterItsCreationRollsWhoStartedWithoutIt(t *testing.T) {
	found := func(c *events.Change) {
		c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
		c.CreatedAt, c.Since = "100", written
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	// What was found is superseded by an event about another key.
	superseded := func(c *events.Change) {
		c.CreatedAt, c.Since, c.ResourceVersion, c.ChangedAt, c.Changed = "100", written, "120", "120", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "120"}}
	}
	optionalKey := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
	made := func(created, edited time.Duration) func(*workload.Workload) {
		return func(w *workload.Workload) { w.Created, w.Edited = written.Add(created), written.Add(edited) }
	}
	tests := []struct {
		name   string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		want   Reason
	}{
		{"the workload is older", optionalDB, made(-time.Second, -time.Second), found, Appeared},
		{"the workload is newer", optionalDB, made(time.Second, time.Second), found, FirstSeen},
		{"the workload is older, and was written later", optionalDB, made(-time.Hour, time.Second), found, FirstSeen},
		{"the workload is older and could not start without it", wholeDB, made(-time.Minute, -time.Minute), found, FirstSeen},
		{"an event about another key came since", optionalKey, made(-time.Minute, -time.Minute), superseded, Appeared},
		{"its template is known to be newer", optionalDB, func(w *workload.Workload) {
			w.Created, w.TemplateVersion = written.Add(-time.Hour), "110"
		}, found, PodsNewer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", test.ref, test.state)
			decision := decisionOf(w, changeOf(test.change), nil)
			if decision.Reason != test.want {
				t.Fatalf("got %s, want %s", decision.Reason, test.want)
			}
			if decision.Reason.Action() != Roll {
				return
			}
			w.Rolled = map[string]workload.RolledFor{"secret/db": decision.Record}
			if again := decisionOf(w, changeOf(test.change), nil); again.Reason.Action() != Skip {
				t.Errorf("the event comes again: got %s, want to skip", again.Reason)
			}
		})
	}
}
