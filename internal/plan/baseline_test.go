package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestABaselineIsWhatPodsAreKnownToHave(t *testing.T) {
	whole := workload.Reference{Kind: events.KindSecret, Name: "db"}
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	observed := func(c *events.Change) {
		c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	tests := []struct {
		name   string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		want   string // the resourceVersion in the record; empty: there is none
	}{
		{"a source that has not changed since it was first seen", whole, nil, observed, workload.NoVersion},
		{"one of which another key has changed", password, nil, func(c *events.Change) {
			c.Keys["password"], c.Keys["user"] = events.Key{Fingerprint: fp("2")}, events.Key{Fingerprint: fp("3"), ChangedAt: "100"}
		}, workload.NoVersion},
		{"one that changed before the pods were made", whole, func(w *workload.Workload) { w.TemplateVersion = "101" }, nil, "100"},
		{"one whose change was decided earlier", password, nil, func(c *events.Change) { c.ResourceVersion = "110" }, "100"},
		{"not one whose pods are being replaced", whole, func(w *workload.Workload) {
			w.TemplateVersion, w.Progress = "101", workload.Progress{State: workload.Progressing, Pods: 1}
		}, nil, ""},
		{"not one that is gone", whole, nil, func(c *events.Change) { c.Verb = events.VerbDeleted }, ""},
		{"not one that is ignored", whole, nil, func(c *events.Change) { c.Ignore = true }, ""},
		{"not one that lacks a key that the pods need", password, nil, func(c *events.Change) { delete(c.Keys, "password") }, ""},
		{"not one that the workload has a record of", whole, func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "uid"}}
		}, nil, ""},
		{"not one whose rollouts were reverted", whole, func(w *workload.Workload) {
			w.Reverted = map[string]workload.Reverted{"secret/db": {Count: 1, Template: w.TemplateID(), Version: "100", UID: "uid"}}
		}, nil, ""},
		{"not one that nothing is known of", whole, nil, func(c *events.Change) { *c = events.Change{Source: db} }, ""},
		{"not one that it does not read", workload.Reference{Kind: events.KindSecret, Name: "other"}, nil, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", test.ref, test.state)
			change := changeOf(test.change)
			record, ok := Baseline(w, change)
			if record.Version != test.want || ok != (test.want != "") {
				t.Fatalf("got %q (%t), want version %q", record, ok, test.want)
			}
			if !ok {
				return
			}
			w.Rolled = map[string]workload.RolledFor{"secret/db": record}
			if again := decisionOf(w, change, nil); again.Reason.Action() != Skip {
				t.Errorf("the event comes again: got %s", again.Reason)
			}
			// The stream and the watcher have forgotten everything, and the source has changed meanwhile.
			lost := changeOf(func(c *events.Change) {
				observed(c)
				c.ResourceVersion, c.Fingerprint, c.Keys["password"] = "200", fp("f"), events.Key{Fingerprint: fp("e")}
			})
			if decision := decisionOf(w, lost, nil); decision.Reason != Changed {
				t.Errorf("other content is first seen: got %s, want %s", decision.Reason, Changed)
			}
		})
	}
}

func TestAWorkloadThatRollsForNothingNowHasABaseline(t *testing.T) {
	for name, state := range map[string]func(*workload.Workload){
		"suspended": func(w *workload.Workload) { w.Suspended = true },
		"aborted":   func(w *workload.Workload) { w.Aborted = true },
	} {
		w := workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db"}, state)
		if record, ok := Baseline(w, changeOf(nil)); !ok || record.Version != "100" {
			t.Errorf("%s: got %q (%t), want the version of the last change", name, record.Version, ok)
		}
	}
}

func TestAChangeAfterTheLinkIsNoBaseline(t *testing.T) {
	if record, ok := Baseline(linkedAt(t, "99", written, nil), changeOf(nil)); ok {
		t.Errorf("got %q: the change is to be rolled for", record)
	}
	if _, ok := Baseline(linkedAt(t, "101", written, nil), changeOf(nil)); !ok {
		t.Error("got none of a change before the workload was annotated")
	}
}
