package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Where two reasons hold, the one that plan asks for first is told.
func TestPlanAsksInOrder(t *testing.T) {
	ignored := func(c *events.Change) { c.Ignore = true }
	deleted := func(c *events.Change) { c.Verb = events.VerbDeleted }
	unchanged := func(c *events.Change) { c.Verb, c.ChangedAt = events.VerbObserved, "" }
	unread := func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("2")} }
	missing := func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }
	created := func(c *events.Change) { c.Created, c.CreatedAt, c.Previous = true, "100", "" }
	pulled := func(w *workload) { w.refs[0].ByPull = true }
	excluding := func(w *workload) { w.optIn, _ = ParseOptIn(rollOn("auto, !secret/db"), nil, false) }
	youngTemplate := func(w *workload) { w.templateVersion = "200" }
	young := func(w *workload) { w.created = written.Add(time.Hour) }
	record := func(version, uid string, of func(*events.Change)) func(*workload) {
		return func(w *workload) {
			print := view(changeOf(of), []string{"password"}).fingerprint
			w.rolled = map[string]RolledFor{"secret/db": {Fingerprint: print, Version: version, UID: uid}}
		}
	}
	other := func(c *events.Change) { c.Keys["password"] = events.Key{Fingerprint: fp("9")} }
	tests := []struct {
		name    string
		changes []func(*events.Change)
		states  []func(*workload)
		from    []func(*events.Change) // nil: none
		want    Reason
	}{
		{"an exclusion before that it is only pulled", nil, []func(*workload){excluding, pulled}, nil, ReasonExcluded},
		{"what the workload asks before what the source says", []func(*events.Change){ignored}, []func(*workload){excluding}, nil, ReasonExcluded},
		{"ignored before deleted", []func(*events.Change){ignored, deleted}, nil, nil, ReasonSourceIgnored},
		{"deleted before never changed", []func(*events.Change){deleted, func(c *events.Change) { c.ChangedAt = "" }}, nil, nil, ReasonSourceDeleted},
		{"never changed before not read", []func(*events.Change){unread, unchanged}, nil, nil, ReasonFirstSeen},
		{"not read before the record", []func(*events.Change){unread}, []func(*workload){record("300", "uid", nil)}, nil, ReasonKeysNotConsumed},
		{"a later record before the same content", nil, []func(*workload){record("300", "uid", nil)}, nil, ReasonStale},
		{"a later record before a missing key", []func(*events.Change){missing}, []func(*workload){record("300", "uid", nil)}, nil, ReasonStale},
		{"this record before a missing key", []func(*events.Change){missing}, []func(*workload){record("100", "uid", missing)}, nil, ReasonAlreadyRolled},
		{"this record before the same content", nil, []func(*workload){record("100", "uid", nil)}, nil, ReasonAlreadyRolled},
		{"the same content before a younger template", nil, []func(*workload){record("50", "uid", nil), youngTemplate}, nil, ReasonSameContent},
		{"the same content before an appearance", []func(*events.Change){created}, []func(*workload){record("50", "another", nil)}, nil, ReasonSameContent},
		{"the content of before, before a missing key", []func(*events.Change){missing}, nil, []func(*events.Change){missing}, ReasonChangedBack},
		{"the content of before, before a younger template", nil, []func(*workload){youngTemplate}, []func(*events.Change){}, ReasonChangedBack},
		{"a record before the content of before", nil, []func(*workload){record("50", "uid", other)}, []func(*events.Change){}, ReasonChanged},
		{"a missing key before a younger template", []func(*events.Change){missing}, []func(*workload){youngTemplate}, nil, ReasonKeyMissing},
		{"a missing key before a younger workload", []func(*events.Change){missing}, []func(*workload){young}, nil, ReasonKeyMissing},
		{"a missing key before an appearance", []func(*events.Change){created, missing}, nil, nil, ReasonKeyMissing},
		{"a younger template before an appearance", []func(*events.Change){created}, []func(*workload){youngTemplate}, nil, ReasonPodsNewer},
		{"a younger workload before an appearance", []func(*events.Change){created}, []func(*workload){young}, nil, ReasonPodsNewer},
		{"an earlier roll before pods that waited: they run with other content", []func(*events.Change){created}, []func(*workload){record("50", "another", other)}, nil, ReasonChanged},
		{"an appearance before a change", []func(*events.Change){created}, nil, nil, ReasonPodsWaited},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ref := Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
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
			if got := plan(w, now, from).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
