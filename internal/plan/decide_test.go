package plan

import (
	"cmp"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// decideTest is a case of Decide.
type decideTest struct {
	name   string
	rollOn string             // default: auto
	ref    workload.Reference // default: all of db
	state  func(*workload.Workload)
	change func(*events.Change)
	memory Memory
	policy Policy
	want   Reason
	// records is the resourceVersion in the entry that the record takes up, or empty if it takes up none.
	records string
	unnoted bool
}

// workload returns the workload that the case is about.
func (tt decideTest) workload(t *testing.T) *workload.Workload {
	t.Helper()
	if tt.ref.Kind == "" {
		tt.ref = wholeDB
	}
	return workloadOf(t, cmp.Or(tt.rollOn, "auto"), tt.ref, tt.state)
}

func testDecide(t *testing.T, tests []decideTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			decision := Decide(tt.workload(t), changeOf(tt.change), tt.memory, tt.policy)
			if decision.Reason != tt.want {
				t.Fatalf("got %s, want %s", decision.Reason, tt.want)
			}
			records := ""
			if decision.Records {
				records = decision.Record.Version
			}
			if records != tt.records {
				t.Errorf("the record takes up %q, want %q", records, tt.records)
			}
			if decision.Unnoted != tt.unnoted {
				t.Errorf("another leader would not know: %t, want %t", decision.Unnoted, tt.unnoted)
			}
		})
	}
}

// testReasons compares the reasons of decisions about a change that has just come. Whoever was rolled for it is then left alone.
func testReasons(t *testing.T, tests []decideTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, change := tt.workload(t), changeOf(tt.change)
			decision := decisionOf(w, change, nil)
			if decision.Reason != tt.want {
				t.Fatalf("got %s, want %s", decision.Reason, tt.want)
			}
			if decision.Reason.Action() != Roll {
				return
			}
			w.Rolled = map[string]workload.RolledFor{change.Source.String(): decision.Record}
			if again := decisionOf(w, change, nil); again.Reason.Action() != Skip {
				t.Errorf("the event comes again: got %s, want that it is skipped", again.Reason)
			}
		})
	}
}

// What a leader remembers of a change at 100: it has seen it come; it has found it; it has found it, and nobody led for the two hours before.
var (
	cameLive = Memory{Base: &Base{Version: "99"}, GapFrom: written.Add(-24 * time.Hour)}
	wasThere = Memory{Base: &Base{Version: "100"}, GapFrom: written.Add(time.Hour)}
	inTheGap = Memory{Base: &Base{Version: "100"}, GapFrom: written.Add(-time.Hour)}
)

// The references of workloads to db.
var (
	wholeDB     = workload.Reference{Kind: events.KindSecret, Name: "db"}
	optionalDB  = workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	passwordDB  = workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	userDB      = workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"user"}, Required: []string{"user"}}
	bothDB      = workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password", "user"}, Required: []string{"password", "user"}}
	storeDB     = workload.Reference{Kind: events.KindOpenBao, Name: "secret/db"}
	optionalKey = workload.Reference{Kind: events.KindSecret, Name: "db", Optional: true, Keys: []string{"password"}}
)

// states does all of this to a workload.
func states(list ...func(*workload.Workload)) func(*workload.Workload) {
	return func(w *workload.Workload) {
		for _, state := range list {
			state(w)
		}
	}
}

// recordOf gives a workload a record of all of db. The content of changeOf is b.
func recordOf(letter, version, uid string) func(*workload.Workload) {
	return entryOf(workload.RolledFor{Fingerprint: fp(letter), Version: version, UID: uid})
}

func entryOf(entry workload.RolledFor) func(*workload.Workload) {
	return func(w *workload.Workload) { w.Rolled = map[string]workload.RolledFor{"secret/db": entry} }
}

// owesTo notes on a workload that it is to be rolled for the content of an object, and owesDeletion that it is for its deletion.
func owesTo(uid string) func(*workload.Workload) {
	return entryOf(workload.Owed(workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: uid}))
}

func owesDeletion(w *workload.Workload) {
	entryOf(workload.Owed(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid"})))(w)
}

// editedAt is when somebody last wrote the workload: so long after the change.
func editedAt(after time.Duration) func(*workload.Workload) {
	return func(w *workload.Workload) { w.Edited = written.Add(after) }
}

// optsIn makes a workload opt in with a write at a resourceVersion, so long after the change.
func optsIn(version string, after time.Duration) func(*workload.Workload) {
	return func(w *workload.Workload) {
		out := *w
		out.OptIn = workload.OptIn{}
		w.Edited = written.Add(after)
		w.LinkAfter(&out, version)
	}
}

// serving says since which resourceVersion a workload has had available pods.
func serving(since string) func(*workload.Workload) {
	return func(w *workload.Workload) { w.ServingSince = since }
}

func hasPods(w *workload.Workload) { w.Progress = workload.Progress{State: workload.Complete, Pods: 3} }

func isFirstSeen(c *events.Change) {
	c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
	c.Keys["password"] = events.Key{Fingerprint: fp("2")}
}

// isCreated says that the event is the first one of an object, and isDeleted that it is the last one.
func isCreated(c *events.Change) {
	c.Created, c.CreatedAt, c.Previous = true, "100", ""
	c.Keys["password"] = events.Key{Fingerprint: fp("2")}
}

// isRecreated says that the source was deleted and created with the content that it had.
func isRecreated(c *events.Change) {
	c.Verb, c.UID, c.ResourceVersion, c.ChangedAt = events.VerbObserved, "another", "140", "90"
	c.Previous, c.Changed, c.Keys["password"] = c.Fingerprint, nil, events.Key{Fingerprint: fp("2"), ChangedAt: "90"}
}

// isInStore makes the source a secret in a store, which was rotated at a version, and storeTime is such a version: so long after the change.
func isInStore(version string) func(*events.Change) {
	return func(c *events.Change) {
		c.Source, c.Keys, c.Truncated = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil, true
		c.ResourceVersion, c.ChangedAt = version, version
	}
}

func storeTime(after time.Duration) string {
	return strconv.FormatInt(written.Add(after).UnixNano(), 10)
}

func lacksPassword(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }

func isIgnored(c *events.Change) { c.Ignore = true }

// isUnknown says that there is no event of the source.
func isUnknown(c *events.Change) { *c = events.Change{Source: db} }

func isDeleted(c *events.Change) {
	c.Verb, c.Time, c.WrittenAt = events.VerbDeleted, written, time.Time{}
}

func TestDecideLeavesAloneWhatIsNotWanted(t *testing.T) {
	testDecide(t, []decideTest{
		{name: "nothing asks for the source", rollOn: "configmaps", memory: cameLive, want: NotOptedIn},
		{name: "it is excluded", rollOn: "auto, !secret/db", memory: cameLive, want: Excluded},
		{name: "the key that is asked for is not read", rollOn: "secret/db#password", ref: userDB, memory: cameLive, want: KeysNotConsumed},
		{name: "nothing is known of the source", change: isUnknown, memory: cameLive, want: Unknown},
		{
			name: "nothing is known any more of a source that is recorded, which is not the same as that it is gone", ref: optionalDB,
			state: recordOf("b", "100", "uid"), change: isUnknown, policy: Policy{Delete: true}, want: Unknown,
		},
	})
}

// What changes while a source is ignored is not to be found later.
func TestDecideRecordsWhatAnIgnoredSourceHas(t *testing.T) {
	testDecide(t, []decideTest{
		{name: "it has changed", change: isIgnored, state: recordOf("a", "90", "uid"), memory: cameLive, want: SourceIgnored, records: "100"},
		{name: "there is no record", change: isIgnored, memory: wasThere, want: SourceIgnored, records: "100"},
		{name: "the workload waited for it", change: isIgnored, state: owesTo("uid"), want: SourceIgnored, records: "100"},
		{name: "it is gone", change: func(c *events.Change) { isDeleted(c); isIgnored(c) }, state: recordOf("a", "90", "uid"), want: SourceIgnored},
	})
}

func TestDecideRecordsWhatHasNotChanged(t *testing.T) {
	testDecide(t, []decideTest{
		{name: "a source that was first seen", change: isFirstSeen, memory: wasThere, want: FirstSeen, records: workload.NoVersion},
		{name: "a source that was first seen, and is recorded", change: isFirstSeen, state: recordOf("b", "80", "uid"), want: FirstSeen},
		{
			name: "another object with the same content, as after a restore", change: isFirstSeen, state: recordOf("b", "900", "elsewhere"),
			want: FirstSeen, records: workload.NoVersion,
		},
		{name: "a source of which another key has changed", ref: userDB, memory: cameLive, want: KeysNotConsumed, records: workload.NoVersion},
	})
}
