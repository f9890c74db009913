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
	again := Memory{Base: &Base{}, GapFrom: written.Add(time.Hour)}
	owed := Memory{Base: wasThere.Base, GapFrom: wasThere.GapFrom, Owed: true}
	reverted := func(count int) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Reverted = map[string]workload.Reverted{"secret/db": {Count: count, Template: w.TemplateID(), Version: "100", UID: "uid"}}
		}
	}
	testDecide(t, []decideTest{
		{name: "the leader has seen the change come", memory: cameLive, want: Changed, unnoted: true},
		{name: "and somebody has written the workload since", state: editedAt(time.Hour), memory: cameLive, want: Changed, unnoted: true},
		{name: "the leader has found the change, as after --roll-all was set", memory: wasThere, want: BeforeOptIn, records: "100"},
		{
			name: "it came while nobody led, after the workload was last written", state: editedAt(-time.Minute), memory: inTheGap,
			want: Changed, unnoted: true,
		},
		{
			name: "it came while nobody led, before the workload was last written", state: editedAt(time.Minute), memory: inTheGap,
			want: BeforeOptIn, records: "100",
		},
		{name: "it came while nobody led, at about the same time", state: editedAt(-clockMargin), memory: inTheGap, want: BeforeOptIn, records: "100"},
		{name: "it came while nobody led, and nobody knows who wrote the workload", memory: inTheGap, want: BeforeOptIn, records: "100"},
		{
			name: "the leader has found it, and has seen that another key has changed since", ref: passwordDB, state: editedAt(-time.Minute),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt, c.Changed = "110", "110", []string{"user"}
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			memory: Memory{Base: &Base{Version: "100"}, GapFrom: written.Add(-time.Hour)}, want: BeforeOptIn, records: "100",
		},
		{name: "the source had no event when the leader began to read", state: editedAt(time.Hour), memory: nobodySaw, want: Changed, unnoted: true},
		{name: "the stream had lost its event, which was published again", memory: again, want: BeforeOptIn, records: "100"},
		{name: "the leader has decided that before", memory: owed, want: Changed, unnoted: true},
		{name: "nothing is remembered", want: Changed, unnoted: true},
		{name: "it is recorded, whatever it is, once it is ignored", change: isIgnored, memory: cameLive, want: SourceIgnored, records: "100"},
		{name: "a key that the pods need is gone, and nothing is recorded", ref: passwordDB, change: lacksPassword, memory: wasThere, want: KeyMissing},
		{name: "a roll for it was reverted", state: reverted(1), memory: wasThere, want: Changed, unnoted: true},
		{name: "each roll for it was reverted", state: reverted(RevertRetries + 1), memory: wasThere, want: Reverted},
		{name: "the source is on hold", change: func(c *events.Change) { c.Hold = "moving" }, memory: cameLive, want: SourceOnHold, unnoted: true},
		{name: "its rollout was aborted", state: func(w *workload.Workload) { w.Aborted = true }, memory: cameLive, want: Aborted, unnoted: true},
		{
			name: "the template changed later", state: func(w *workload.Workload) { w.TemplateVersion = "101" }, memory: cameLive,
			want: PodsNewer, records: "100",
		},
	})
}

// A store has a clock, and no resourceVersions.
func TestDecideComparesTheTimesOfAStore(t *testing.T) {
	at := func(after time.Duration) string { return nanosecondsOf(written.Add(after)) }
	store := workload.Reference{Kind: events.KindOpenBao, Name: "secret/db"}
	rotated := func(c *events.Change) {
		c.Source, c.Keys, c.Truncated = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil, true
		c.Verb, c.UID, c.ResourceVersion, c.ChangedAt, c.Time = events.VerbRotated, "bao", at(0), at(0), written
	}
	gap := written.Add(-time.Hour)
	testDecide(t, []decideTest{
		{name: "the leader has seen it come", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(-1)}}, want: Changed, unnoted: true},
		{
			name: "the leader has found it", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(0)}, GapFrom: written.Add(time.Hour)},
			want: BeforeOptIn, records: at(0),
		},
		{
			name: "it came while nobody led", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(0)}, GapFrom: gap},
			state: editedAt(-time.Minute), want: Changed, unnoted: true,
		},
		{
			name: "the workload opted in after that", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(-1)}},
			state: optsIn("101", time.Hour), want: BeforeOptIn, records: at(0),
		},
		{
			name: "the workload opted in before that", ref: store, change: rotated, state: optsIn("101", -time.Hour),
			memory: Memory{Base: &Base{Version: at(0)}, GapFrom: written.Add(time.Hour)}, want: Changed, unnoted: true,
		},
		{
			name: "it is gone, which rolls nothing", ref: store, change: func(c *events.Change) { rotated(c); c.Verb = events.VerbDeleted },
			memory: Memory{Base: &Base{Version: at(-1)}}, policy: Policy{Delete: true}, want: SourceDeleted,
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
		{
			name:  "with the record of an earlier opt-in, of the same content: pods may have started in between",
			state: states(recordOf("b", "80", "uid"), before), memory: cameLive, want: BeforeOptIn, records: "100",
		},
		{name: "a change after it rolls without a record", state: after, memory: cameLive, want: Changed, unnoted: true},
		{name: "a change after it rolls if it was there, too", state: after, memory: wasThere, want: Changed, unnoted: true},
		{
			name: "a change after it rolls with a record, which does not show that", state: states(recordOf("a", "90", "uid"), after), memory: cameLive,
			want: Changed, unnoted: true,
		},
		{
			name: "a change after it rolls with a record of the same content", state: states(recordOf("b", "80", "uid"), after), memory: cameLive,
			want: Changed, unnoted: true,
		},
		{name: "a change that came later by its time rolls", state: optsIn("101", -time.Minute), memory: cameLive, want: Changed, unnoted: true},
		{
			name: "another key has changed after it", ref: passwordDB, state: after, memory: cameLive, want: BeforeOptIn, records: "80",
			change: func(c *events.Change) {
				c.Keys["password"], c.Keys["user"] = events.Key{Fingerprint: fp("2"), ChangedAt: "80"}, events.Key{Fingerprint: fp("4"), ChangedAt: "100"}
			},
		},
		{
			name: "but what it waited for before it wanted more rolls", state: states(recordOf("a", "90", "uid"), before), memory: owed,
			want: Changed, unnoted: true,
		},
		{name: "but what is noted rolls", state: states(owesTo("uid"), before), memory: cameLive, want: Changed},
		{name: "and what is decided stays so", state: states(recordOf("b", "100", "uid"), before), memory: cameLive, want: AlreadyRolled},
	})
}
