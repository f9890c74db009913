package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// farAhead is a resourceVersion that no cluster reaches.
const farAhead = "9999999999999999999"

// lastWrittenAt is the resourceVersion of a workload, and thus of the last write of its record.
func lastWrittenAt(version string) func(*workload.Workload) {
	return func(w *workload.Workload) { w.Version = version }
}

// kept gives a workload a record in memory only.
func kept(record func(*workload.Workload)) func(*workload.Workload) {
	return func(w *workload.Workload) {
		patched := *w
		record(&patched)
		*w = *w.Keeping(&patched)
	}
}

// Whoever has the token of the actuator can write any record. None keeps a workload from being rolled for what changes later.
func TestDecideDoesNotBelieveARecordOfAChangeThatIsStillToCome(t *testing.T) {
	deleted := workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("a"), Version: farAhead, UID: "uid"})
	owed := workload.Owed(workload.RolledFor{Fingerprint: fp("a"), UID: "uid"})
	owed.Version = farAhead
	here := lastWrittenAt("95")
	testDecide(t, []decideTest{
		{name: "the content is another one", state: states(recordOf("a", farAhead, "uid"), here), memory: cameLive, want: RecordImpossible, unnoted: true},
		{name: "the next leader finds it", state: states(recordOf("a", farAhead, "uid"), here), memory: wasThere, want: RecordImpossible, unnoted: true},
		{
			name: "it is just ahead of the workload and of the source", state: states(recordOf("a", "101", "uid"), here), memory: cameLive,
			want: RecordImpossible, unnoted: true,
		},
		{name: "the pods have the content", state: states(recordOf("b", farAhead, "uid"), here), want: RecordCorrected, records: "100"},
		{
			name: "the source has not changed since it was first seen", state: states(recordOf("b", farAhead, "uid"), here), change: isFirstSeen,
			want: RecordCorrected, records: workload.NoVersion,
		},
		{
			name: "the template changed later", memory: cameLive, want: PodsNewer, records: "100",
			state: states(recordOf("a", farAhead, "uid"), here, func(w *workload.Workload) { w.TemplateVersion = "101" }),
		},
		{
			name: "it says that the source was gone", ref: optionalDB, state: states(entryOf(deleted), here), memory: cameLive,
			want: RecordImpossible, unnoted: true,
		},
		{
			name: "it says so before the source is gone", ref: optionalDB, state: states(entryOf(deleted), here), change: isDeleted,
			policy: Policy{Delete: true}, want: Deleted, unnoted: true,
		},
		{name: "it says that a roll is owed", state: states(entryOf(owed), here), want: RecordImpossible},
		{
			name: "it is in memory, as what an outcome says", state: states(here, kept(recordOf("a", farAhead, "uid"))), memory: cameLive,
			want: RecordImpossible, unnoted: true,
		},
		{
			name: "the source is on hold, and the record shows nothing to the next leader", memory: cameLive, want: SourceOnHold, unnoted: true,
			state: states(recordOf("a", farAhead, "uid"), here), change: func(c *events.Change) { c.Hold = "moving" },
		},
		{
			name: "another object of the name has its content compared", state: states(recordOf("a", farAhead, "elsewhere"), here), memory: cameLive,
			want: Changed,
		},
	})
}

// If sources are in another etcd than workloads, all of their versions may be ahead of those of workloads.
func TestDecideBelievesARecordOfWhatTheSourceHasHad(t *testing.T) {
	testDecide(t, []decideTest{
		{name: "of this change", state: states(recordOf("b", "100", "uid"), lastWrittenAt("7")), want: AlreadyRolled},
		{name: "of an earlier one", state: states(recordOf("a", "90", "uid"), lastWrittenAt("7")), memory: cameLive, want: Changed},
		{
			name: "of a change before the last event, which is about another key", state: states(recordOf("b", "100", "uid"), lastWrittenAt("7")),
			change: func(c *events.Change) { c.ResourceVersion = "120" }, want: KeysNotConsumed,
		},
		{name: "in memory, of this change", state: states(lastWrittenAt("7"), kept(recordOf("b", "100", "uid"))), want: AlreadyRolled},
		{name: "of a later one, which the workload has seen", want: AlreadyRolled, state: states(recordOf("c", "101", "uid"), lastWrittenAt("101"))},
		{
			name: "of a later one, by an API server whose versions are no numbers", want: AlreadyRolled,
			state: states(recordOf("c", "101", "uid"), lastWrittenAt("x")),
		},
	})
}

func TestDecideDoesNotBelieveThatARecordHadNoRoomForWhatIsStillToCome(t *testing.T) {
	other := workload.Reference{Kind: events.KindSecret, Name: "other"}
	done := func(version, own string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Version, w.Rolled = own, map[string]workload.RolledFor{"secret/*": {Fingerprint: "-", Version: version, UID: "-"}}
		}
	}
	testDecide(t, []decideTest{
		{
			name: "up to a version that nobody has seen", rollOn: "secret/d*", ref: other, state: done(farAhead, "95"), memory: cameLive,
			want: RecordImpossible, unnoted: true,
		},
		{
			name: "and the content has not changed", rollOn: "secret/d*", ref: other, state: done(farAhead, "95"), change: isFirstSeen, memory: wasThere,
			want: FirstSeen, records: workload.NoVersion,
		},
		{name: "up to one that the workload has seen", rollOn: "secret/d*", ref: other, state: done("200", "200"), memory: cameLive, want: AlreadyRolled},
		{
			name: "up to that of another source, which could not be written on the workload", rollOn: "secret/d*", ref: other,
			state: states(lastWrittenAt("95"), kept(done("200", "95"))), memory: cameLive, want: AlreadyRolled,
		},
	})
}

// The versions of a store are times.
func TestDecideDoesNotBelieveARecordOfAStoreInTheFuture(t *testing.T) {
	recordedAt := func(version string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"openbao/bao/root/secret/db": {Fingerprint: fp("a"), Version: version, UID: "uid"}}
		}
	}
	rotated := isInStore(storeTime(0))
	testDecide(t, []decideTest{
		{
			name: "a year ahead", ref: storeDB,
			state: recordedAt(storeTime(365 * 24 * time.Hour)), change: rotated, memory: justCame, want: RecordImpossible, unnoted: true,
		},
		{name: "in no time", ref: storeDB, state: recordedAt(farAhead + "0"), change: rotated, memory: justCame, want: RecordImpossible, unnoted: true},
		{
			name: "as far ahead as a clock may be", ref: storeDB, state: recordedAt(storeTime(time.Minute)), change: rotated, memory: justCame,
			want: AlreadyRolled,
		},
		{
			name: "by a store whose clock is years ahead, and that has this version", ref: storeDB, state: recordedAt(storeTime(9000 * time.Hour)),
			change: isInStore(storeTime(9000 * time.Hour)), memory: justCame, want: AlreadyRolled,
		},
	})
}

// A record with a mark has room for none of the other secrets in the store: each would be rolled for, and displace another one.
func TestDecideBelievesAMarkOfAStoreWhoseClockIsAhead(t *testing.T) {
	everywhere := workload.StoreAccess{Grants: []workload.StoreGrant{{Namespaces: []string{"*"}, Store: "*", Paths: []string{"*"}}}}
	for _, test := range []struct {
		name, mark string
		want       Reason
	}{
		{"by an hour", storeTime(time.Hour), AlreadyRolled},
		{"by a year, which no store is", storeTime(365 * 24 * time.Hour), RecordImpossible},
		{"out of time", farAhead + "0", RecordImpossible},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := webWith(t, map[string]string{workload.AnnotationRollOn: "openbao:secret/*"}, workload.Reading{Stores: everywhere})
			w.Rolled = map[string]workload.RolledFor{"openbao/bao/*": {Fingerprint: "-", Version: test.mark, UID: "bao"}}
			if got := Decide(w, changeOf(isInStore(storeTime(0))), justCame, Policy{}).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A record from a backup of another cluster, or of this one in the state of an earlier time, must not roll its workload again and again.
func TestARecordThatIsNotBelievedRollsAWorkloadOnce(t *testing.T) {
	for _, content := range []string{"a", "b"} {
		w := workloadOf(t, "auto", wholeDB, states(recordOf(content, farAhead, "uid"), lastWrittenAt("95"), hasPods))
		first := Decide(w, changeOf(nil), cameLive, Policy{})
		if !first.Records && first.Reason.Action() != Roll {
			t.Fatalf("the record of content %s is decided %s, and stays", content, first.Reason)
		}
		w.Rolled = map[string]workload.RolledFor{"secret/db": first.Record}
		if again := Decide(w, changeOf(nil), wasThere, Policy{}); again.Reason != AlreadyRolled {
			t.Errorf("after %s: got %s, want %s", first.Reason, again.Reason, AlreadyRolled)
		}
	}
}

// FuzzARecordIsSilentOnlyAboutWhatIsThere checks that no text of a version in a record makes a change of other content look like one that the
// workload was rolled for, unless it is that of the change, or the workload has been written since.
func FuzzARecordIsSilentOnlyAboutWhatIsThere(f *testing.F) {
	for _, version := range []string{"", "0", "90", "100", "101", farAhead, "0" + farAhead, "-1", "1e9", "0x10", "99 ", "१००", "\x00", "@", "#*"} {
		f.Add(version)
	}
	f.Fuzz(func(t *testing.T, version string) {
		w := workloadOf(t, "auto", wholeDB, states(recordOf("a", version, "uid"), lastWrittenAt("95")))
		got := Decide(w, changeOf(nil), cameLive, Policy{})
		if silent := got.Reason.Action() != Roll; silent != (version == "100") {
			t.Errorf("the version %q in the record makes it %s", version, got.Reason)
		}
	})
}
