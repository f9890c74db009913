package plan

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// An event that does not say when the content changed, because the stream knew nothing before it, is compared with what the workload recorded.
func TestARecordTellsWhatChangedBeforeTheSourceWasFirstSeen(t *testing.T) {
	// What was first seen is superseded by an event about a key that is not read.
	superseded := func(c *events.Change) {
		c.Changed = []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
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
			rolled(passwordDB, "1", "80", "uid")(w)
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
		{"other content, read by a key", passwordDB, rolled(passwordDB, "1", "80", "uid"), isFirstSeen, Changed},
		{"the same content, read as a whole", wholeDB, rolled(wholeDB, "2", "80", "uid"), isFirstSeen, FirstSeen},
		{"other content of another object of this name", passwordDB, rolled(passwordDB, "1", "999", "elsewhere"), isFirstSeen, Changed},
		{"a record under another key of the installation", passwordDB, edited(func(r *workload.RolledFor) {
			r.Fingerprint = "kffffffff" + r.Fingerprint[len("kffffffff"):]
		}), isFirstSeen, FirstSeen},
		{"other content that a later event about another key superseded", passwordDB, rolled(passwordDB, "1", "80", "uid"), superseded, Changed},
		{"other content of a source that was away for long, read by a key", passwordDB, rolled(passwordDB, "1", "80", "another"), isCreated, Changed},
		{"the same content of a source that was away for long", passwordDB, rolled(passwordDB, "2", "80", "another"), isCreated, KeysNotConsumed},
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
