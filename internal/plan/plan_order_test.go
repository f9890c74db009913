package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Where two reasons hold, the decision is the one that plan asks for first.
func TestPlanAsksInOrder(t *testing.T) {
	ignored := func(c *events.Change) { c.Ignore = true }
	deleted := func(c *events.Change) { c.Verb = events.VerbDeleted }
	unchanged := func(c *events.Change) { c.Verb, c.ChangedAt = events.VerbObserved, "" }
	unread := func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("2")} }
	missing := func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }
	created := func(c *events.Change) { c.Created, c.CreatedAt, c.Previous = true, "100", "" }
	pulled := func(w *workload.Workload) { w.Refs[0].ByPull = true }
	excluding := func(w *workload.Workload) {
		w.OptIn = workloadOf(t, "auto, !secret/db", workload.Reference{}, nil).OptIn
	}
	youngTemplate := func(w *workload.Workload) { w.TemplateVersion = "200" }
	young := func(w *workload.Workload) { w.Created = written.Add(time.Hour) }
	record := func(version, uid string, of func(*events.Change)) func(*workload.Workload) {
		return func(w *workload.Workload) {
			print := viewOf(changeOf(of), []string{"password"}).fingerprint
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: print, Version: version, UID: uid}}
		}
	}
	other := func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("9")} }
	tests := []struct {
		name    string
		changes []func(*events.Change)
		states  []func(*workload.Workload)
		from    []func(*events.Change) // nil: none
		want    Reason
	}{
		{"an exclusion before that it is only pulled", nil, []func(*workload.Workload){excluding, pulled}, nil, Excluded},
		{"what the workload asks before what the source says", []func(*events.Change){ignored}, []func(*workload.Workload){excluding}, nil, Excluded},
		{"ignored before deleted", []func(*events.Change){ignored, deleted}, nil, nil, SourceIgnored},
		{"deleted before never changed", []func(*events.Change){deleted, func(c *events.Change) { c.ChangedAt = "" }}, nil, nil, SourceDeleted},
		{"never changed before not read", []func(*events.Change){unread, unchanged}, nil, nil, FirstSeen},
		{"not read before the record", []func(*events.Change){unread}, []func(*workload.Workload){record("300", "uid", nil)}, nil, KeysNotConsumed},
		{"a later record before the same content", nil, []func(*workload.Workload){record("300", "uid", nil)}, nil, Stale},
		{"a later record before a missing key", []func(*events.Change){missing}, []func(*workload.Workload){record("300", "uid", nil)}, nil, Stale},
		{"this record before a missing key", []func(*events.Change){missing}, []func(*workload.Workload){record("100", "uid", missing)}, nil, AlreadyRolled},
		{"this record before the same content", nil, []func(*workload.Workload){record("100", "uid", nil)}, nil, AlreadyRolled},
		{"the same content before a younger template", nil, []func(*workload.Workload){record("50", "uid", nil), youngTemplate}, nil, SameContent},
		{"the same content before an appearance", []func(*events.Change){created}, []func(*workload.Workload){record("50", "another", nil)}, nil, SameContent},
		{"the content of before, before a missing key", []func(*events.Change){missing}, nil, []func(*events.Change){missing}, ChangedBack},
		{"the content of before, before a younger template", nil, []func(*workload.Workload){youngTemplate}, []func(*events.Change){}, ChangedBack},
		{"a record before the content of before", nil, []func(*workload.Workload){record("50", "uid", other)}, []func(*events.Change){}, Changed},
		{"a missing key before a younger template", []func(*events.Change){missing}, []func(*workload.Workload){youngTemplate}, nil, KeyMissing},
		{"a missing key before a younger workload", []func(*events.Change){missing}, []func(*workload.Workload){young}, nil, KeyMissing},
		{"a missing key before an appearance", []func(*events.Change){created, missing}, nil, nil, KeyMissing},
		{"a younger template before an appearance", []func(*events.Change){created}, []func(*workload.Workload){youngTemplate}, nil, PodsNewer},
		{"a younger workload before an appearance", []func(*events.Change){created}, []func(*workload.Workload){young}, nil, PodsNewer},
		{"an earlier roll before pods that waited: they run with other content", []func(*events.Change){created}, []func(*workload.Workload){record("50", "another", other)}, nil, Changed},
		{"an appearance before a change", []func(*events.Change){created}, nil, nil, PodsWaited},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ref := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
			w := workloadOf(t, "auto", ref, nil)
			for _, change := range test.states {
				change(w)
			}
			now := changeOf(nil)
			for _, change := range test.changes {
				change(&now)
			}
			var from *events.Change
			if test.from != nil {
				before := changeOf(func(c *events.Change) { c.ResourceVersion = "90" })
				for _, change := range test.from {
					change(&before)
				}
				from = &before
			}
			if got := Decide(w, now, from).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
