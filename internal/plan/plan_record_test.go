package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// An event that does not say when the content changed, because the stream knew nothing before it, is compared with what the workload recorded.
func TestARecordTellsWhatChangedBeforeTheSourceWasFirstSeen(t *testing.T) {
	whole := workload.Reference{Kind: events.KindSecret, Name: "db"}
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	observed := func(c *events.Change) {
		c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	// What was first seen is superseded by an event about a key that is not read.
	superseded := func(c *events.Change) {
		c.Changed = []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}
	// It was away for so long that the stream forgot it.
	returned := func(c *events.Change) {
		c.Created, c.CreatedAt, c.Previous = true, "100", ""
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	rolled := func(ref workload.Reference, password, version, uid string) func(*workload.Workload) {
		before := changeOf(func(c *events.Change) {
			c.Keys["password"] = events.Key{Fingerprint: fp(password), ChangedAt: version}
			c.Fingerprint = fp(map[bool]string{true: "b", false: "a"}[password == "2"])
		})
		record := decisionOf(workloadOf(t, "auto", ref, nil), before, nil).Record
		record.Version, record.UID = version, uid
		return func(w *workload.Workload) { w.Rolled = map[string]workload.RolledFor{"secret/db": record} }
	}
	edited := func(edit func(*workload.RolledFor)) func(*workload.Workload) {
		return func(w *workload.Workload) {
			rolled(password, "1", "80", "uid")(w)
			record := w.Rolled["secret/db"]
			edit(&record)
			w.Rolled["secret/db"] = record
		}
	}
	tests := []struct {
		name   string
		ref    workload.Reference
		state  func(*workload.Workload)
		change func(*events.Change)
		want   Reason
	}{
		{"other content, read as a whole", whole, rolled(whole, "1", "80", "uid"), observed, Changed},
		{"other content, read by a key", password, rolled(password, "1", "80", "uid"), observed, Changed},
		{"the same content, read as a whole", whole, rolled(whole, "2", "80", "uid"), observed, FirstSeen},
		{"the same content, read by a key", password, rolled(password, "2", "80", "uid"), observed, FirstSeen},
		{"other content of another object of this name", password, rolled(password, "1", "999", "elsewhere"), observed, Changed},
		{"a record under another key of the installation", password, edited(func(r *workload.RolledFor) {
			r.Fingerprint = "kffffffff" + r.Fingerprint[len("kffffffff"):]
		}), observed, FirstSeen},
		{"a record of other keys, before the workload was edited", password, rolled(whole, "1", "80", "uid"), observed, FirstSeen},
		{"other content that a later event about another key superseded", password, rolled(password, "1", "80", "uid"), superseded, Changed},
		{"the same content, and an event about another key", password, rolled(password, "2", "80", "uid"), superseded, KeysNotConsumed},
		{"other content of a source that was away for long, read by a key", password, rolled(password, "1", "80", "another"), returned, Changed},
		{"other content of a source that was away for long, read as a whole", whole, rolled(whole, "1", "80", "another"), returned, Changed},
		{"the same content of a source that was away for long", password, rolled(password, "2", "80", "another"), returned, KeysNotConsumed},
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
			if again := decisionOf(w, changeOf(test.change), nil); again.Reason != AlreadyRolled {
				t.Errorf("the event comes again: got %s, want %s", again.Reason, AlreadyRolled)
			}
		})
	}
}
