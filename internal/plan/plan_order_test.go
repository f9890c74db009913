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
	optional := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	optionalKey := workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
	required := workload.Reference{Kind: events.KindSecret, Name: "db"}
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
		{"the workload is older", optional, made(-time.Second, -time.Second), found, Appeared},
		{"the workload is older, and its writes are not known", optional, func(w *workload.Workload) {
			w.Created = written.Add(-time.Second)
		}, found, Appeared},
		{"the workload is older and reads one key", optionalKey, made(-time.Minute, -time.Second), found, Appeared},
		{"the workload is of the same second", optional, made(0, 0), found, FirstSeen},
		{"the workload is newer", optional, made(time.Second, time.Second), found, FirstSeen},
		{"the workload is older, and was written later", optional, made(-time.Hour, time.Second), found, FirstSeen},
		{"the workload is older, and only what it has read of others was recorded later", optional, func(w *workload.Workload) {
			made(-time.Hour, -time.Minute)(w)
			w.Patched, w.Written = written.Add(time.Second), written.Add(time.Second)
		}, found, Appeared},
		{"the workload is older and could not start without it", required, made(-time.Minute, -time.Minute), found, FirstSeen},
		{"an event about another key came since", optionalKey, made(-time.Minute, -time.Minute), superseded, Appeared},
		{"an event about another key came since, and the workload is newer", optionalKey, made(time.Second, time.Second), superseded, KeysNotConsumed},
		{"its template is known to be newer", optional, func(w *workload.Workload) {
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
		{"deleted before never changed", []func(*events.Change){deleted, func(c *events.Change) { c.ChangedAt = "" }}, nil, nil, SourceDeleted},
		{"never changed before not read", []func(*events.Change){unread, unchanged}, nil, nil, FirstSeen},
		{"not read before the record", []func(*events.Change){unread}, []func(*workload.Workload){record("300", "uid", nil)}, nil, KeysNotConsumed},
		{"a later record before the same content", nil, []func(*workload.Workload){record("300", "uid", nil)}, nil, AlreadyRolled},
		{"a later record before a missing key", []func(*events.Change){missing}, []func(*workload.Workload){record("300", "uid", nil)}, nil, AlreadyRolled},
		{"this record before a missing key", []func(*events.Change){missing}, []func(*workload.Workload){record("100", "uid", missing)}, nil, AlreadyRolled},
		{"the same content before a younger template", nil, []func(*workload.Workload){record("50", "uid", nil), youngTemplate}, nil, SameContent},
		{"the same content before an appearance", []func(*events.Change){created}, []func(*workload.Workload){record("50", "another", nil)}, nil, SameContent},
		{"the content of before, before a missing key", []func(*events.Change){missing}, nil, []func(*events.Change){missing}, ChangedBack},
		{"the content of before, before a younger template", nil, []func(*workload.Workload){youngTemplate}, []func(*events.Change){}, ChangedBack},
		{"a missing key before a younger template", []func(*events.Change){missing}, []func(*workload.Workload){youngTemplate}, nil, KeyMissing},
		{"a missing key before a younger workload", []func(*events.Change){missing}, []func(*workload.Workload){young}, nil, KeyMissing},
		{"a missing key before an appearance", []func(*events.Change){created, missing}, nil, nil, KeyMissing},
		{"a younger template before an appearance", []func(*events.Change){created}, []func(*workload.Workload){youngTemplate}, nil, PodsNewer},
		{"a younger workload before an appearance", []func(*events.Change){created}, []func(*workload.Workload){young}, nil, PodsNewer},
		{"an earlier roll before pods that waited: they run with other content", []func(*events.Change){created}, []func(*workload.Workload){record("50", "another", other)}, nil, Changed},
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
			if got := decisionOf(w, now, from).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
