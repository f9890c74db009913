package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// A workload without a record is rolled for what changed since it began to want the source.
func TestDecideRollsAWorkloadWithoutARecordForWhatIsNews(t *testing.T) {
	nobodySaw := Memory{Base: &Base{}, GapFrom: written.Add(-time.Hour)}
	owed := Memory{Base: wasThere.Base, GapFrom: wasThere.GapFrom, Owed: true}
	testDecide(t, []decideTest{
		{name: "the leader has seen the change come", memory: cameLive, want: Changed, unnoted: true},
		{name: "the leader has found the change, as after --roll-all was set", memory: wasThere, want: BeforeOptIn, records: "100"},
		{
			name: "it came while nobody led, after the workload was last written", state: editedAt(-time.Minute), memory: inTheGap,
			want: Changed, unnoted: true,
		},
		{
			name: "it came while nobody led, before the workload was last written", state: editedAt(time.Minute), memory: inTheGap,
			want: BeforeOptIn, records: "100",
		},
		{name: "the source had no event when the leader began to read", state: editedAt(time.Hour), memory: nobodySaw, want: Changed, unnoted: true},
		{name: "the leader has decided that before", memory: owed, want: Changed, unnoted: true},
		{name: "nothing is remembered", want: Changed, unnoted: true},
		{name: "a key that the pods need is gone, and nothing is recorded", ref: passwordDB, change: lacksPassword, memory: wasThere, want: KeyMissing},
		{name: "a roll for it was reverted", state: revertedAt("100", 1), memory: wasThere, want: Changed, unnoted: true},
		{name: "the source is on hold", change: func(c *events.Change) { c.Hold = "moving" }, memory: cameLive, want: SourceOnHold, unnoted: true},
	})
}

// A store has a clock, and no resourceVersions.
func TestDecideComparesTheTimesOfAStore(t *testing.T) {
	rotated := func(c *events.Change) {
		isInStore(storeTime(0))(c)
		c.Verb, c.UID, c.Time = events.VerbRotated, "bao", written
	}
	live, found := Memory{Base: &Base{Version: storeTime(-1)}}, Memory{Base: &Base{Version: storeTime(0)}, GapFrom: written.Add(time.Hour)}
	testDecide(t, []decideTest{
		{name: "the leader has seen it come", ref: storeDB, change: rotated, memory: live, want: Changed, unnoted: true},
		{name: "the leader has found it", ref: storeDB, change: rotated, memory: found, want: BeforeOptIn, records: storeTime(0)},
		{
			name: "the workload opted in after that", ref: storeDB, change: rotated, memory: live,
			state: optsIn("101", time.Hour), want: BeforeOptIn, records: storeTime(0),
		},
		{
			name: "it is gone, which rolls nothing", ref: storeDB, change: func(c *events.Change) { rotated(c); c.Verb = events.VerbDeleted },
			memory: live, policy: Policy{Delete: true}, want: SourceDeleted,
		},
	})
}

// A link gates a workload with a record, too.
func TestDecideRollsForNothingThatCameBeforeALink(t *testing.T) {
	before, after := optsIn("101", time.Hour), optsIn("99", -time.Hour)
	owed := Memory{Base: cameLive.Base, GapFrom: cameLive.GapFrom, Owed: true}
	testDecide(t, []decideTest{
		{name: "without a record", state: before, memory: cameLive, want: BeforeOptIn, records: "100"},
		{
			name: "with the record of an earlier opt-in", state: states(recordOf("a", "90", "uid"), before), memory: cameLive,
			want: BeforeOptIn, records: "100",
		},
		{name: "a change after it rolls without a record", state: after, memory: cameLive, want: Changed, unnoted: true},
		{
			name: "a change after it rolls with a record of the same content", state: states(recordOf("b", "80", "uid"), after), memory: cameLive,
			want: Changed, unnoted: true,
		},
		{name: "a change that came later by its time rolls", state: optsIn("101", -time.Minute), memory: cameLive, want: Changed, unnoted: true},
		{
			name: "but what it waited for before it wanted more rolls", state: states(recordOf("a", "90", "uid"), before), memory: owed,
			want: Changed, unnoted: true,
		},
		{name: "but what is noted rolls", state: states(owesTo("uid"), before), memory: cameLive, want: Changed},
	})
}

func TestDecideComparesWithTheRecord(t *testing.T) {
	testDecide(t, []decideTest{
		{name: "the content differs", state: recordOf("a", "90", "uid"), memory: cameLive, want: Changed},
		{name: "the content differs, whenever it changed", state: recordOf("a", "90", "uid"), memory: wasThere, want: Changed},
		{name: "the record is of a later change", state: states(recordOf("c", "101", "uid"), lastWrittenAt("150")), memory: cameLive, want: AlreadyRolled},
		{name: "the record is of this change", state: recordOf("b", "100", "uid"), memory: cameLive, want: AlreadyRolled},
		{name: "it is noted, and nobody remembers why", state: owesTo("uid"), memory: wasThere, want: Changed},
		{
			name: "it is noted, and the stream knows nothing of a change any more", state: owesTo("uid"), change: isFirstSeen, memory: wasThere,
			want: Changed,
		},
		{
			name: "the workload is suspended", state: states(recordOf("a", "90", "uid"), func(w *workload.Workload) { w.Suspended = true }),
			want: Suspended, records: "100",
		},
		{name: "the source is on hold", state: recordOf("a", "90", "uid"), change: func(c *events.Change) { c.Hold = "moving" }, want: SourceOnHold},
		{
			name: "the template changed later", state: states(recordOf("a", "90", "uid"), func(w *workload.Workload) { w.TemplateVersion = "101" }),
			memory: cameLive, want: PodsNewer, records: "100",
		},
	})
}

// A content that comes and goes may be in pods that started in between.
func TestDecideRollsForAContentThatCameAndWentUnlessItWasQuick(t *testing.T) {
	now := written.Add(time.Hour)
	quick, slow := Memory{Now: now, Since: now.Add(-longWait)}, Memory{Now: now, Since: now.Add(-longWait - time.Second)}
	had := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt = "90", "" })
	with := func(memory Memory, from *events.Change) Memory {
		memory.Base, memory.GapFrom, memory.From = cameLive.Base, cameLive.GapFrom, from
		return memory
	}
	recorded := states(recordOf("b", "80", "uid"), hasPods)
	testDecide(t, []decideTest{
		{name: "it was quick", state: recorded, memory: quick, want: SameContent, records: "100"},
		{name: "it took long", state: recorded, memory: slow, want: Changed},
		{
			name: "it was quick, and a roll for what was there in between was reverted", memory: quick, want: Changed,
			state: states(recorded, revertedAt("90", 1)),
		},
		{
			name: "its pods are of a later template", state: states(recorded, func(w *workload.Workload) { w.TemplateVersion = "101" }),
			memory: slow, want: PodsNewer, records: "100",
		},
		{name: "it was quick, and there is no record", state: hasPods, memory: with(quick, &had), want: ChangedBack, records: "100"},
		{name: "it took long, and there is no record", state: hasPods, memory: with(slow, &had), want: Changed, unnoted: true},
		{
			name: "the object is another one, and has what it was created with", state: states(recordOf("b", "80", "earlier"), hasPods),
			change: func(c *events.Change) { c.Created, c.CreatedAt, c.Previous = true, "100", "" }, memory: wasThere,
			want: SameContent, records: "100",
		},
		{
			name: "the object is another one, and the one before had something else at last", state: states(recordOf("b", "80", "earlier"), hasPods),
			change: func(c *events.Change) { c.Created, c.CreatedAt = true, "100" }, memory: wasThere, want: Changed,
		},
	})
}

// The stream was put back to before a source was deleted and created again.
func TestDecideDoesNotRollForAnObjectThatCameBeforeTheRecord(t *testing.T) {
	here := func(w *workload.Workload) { w.Version, w.Patched = "150", written }
	testDecide(t, []decideTest{
		{name: "the record is of a later object", state: states(recordOf("c", "101", "later"), here), want: AlreadyRolled},
		{
			name: "the record may be of another cluster: nobody has written it here", want: Changed,
			state: states(recordOf("c", "101", "later"), here, func(w *workload.Workload) { w.Patched = time.Time{} }),
		},
		{name: "the record is of another cluster: it is later than the workload", state: states(recordOf("c", "151", "later"), here), want: Changed},
	})
}

// A record says which keys it is about, and what it says of others is not known.
func TestDecideRollsInDoubtForKeysThatTheRecordIsNotAbout(t *testing.T) {
	ofPassword := func(w *workload.Workload) {
		entryOf(workload.RolledFor{Fingerprint: fp("9"), Version: "90", UID: "uid", Scope: workload.ScopeOf([]string{"password"})})(w)
	}
	userAt := func(version string) func(*events.Change) {
		return func(c *events.Change) { c.Keys["user"] = events.Key{Fingerprint: fp("3"), ChangedAt: version} }
	}
	testDecide(t, []decideTest{
		{name: "which have changed since", ref: userDB, state: ofPassword, change: userAt("95"), memory: wasThere, want: Changed},
		{name: "but not if they have not", ref: userDB, state: ofPassword, change: userAt("80"), memory: wasThere, want: AlreadyRolled},
	})
}
