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
	reverted := func(count int) func(*workload.Workload) { return revertedAt("100", count) }
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
		{name: "a roll for it was reverted", state: reverted(1), memory: wasThere, want: Changed, unnoted: true},
		{name: "the source is on hold", change: func(c *events.Change) { c.Hold = "moving" }, memory: cameLive, want: SourceOnHold, unnoted: true},
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
	testDecide(t, []decideTest{
		{name: "the leader has seen it come", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(-1)}}, want: Changed, unnoted: true},
		{
			name: "the leader has found it", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(0)}, GapFrom: written.Add(time.Hour)},
			want: BeforeOptIn, records: at(0),
		},
		{
			name: "the workload opted in after that", ref: store, change: rotated, memory: Memory{Base: &Base{Version: at(-1)}},
			state: optsIn("101", time.Hour), want: BeforeOptIn, records: at(0),
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
