package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// A deletion is no difference of content, and counts once it happens.
func TestDecideRollsForADeletionThatIsNews(t *testing.T) {
	onDelete := Policy{Delete: true}
	alive := Memory{Base: &Base{Version: "100"}, GapFrom: written.Add(time.Hour)}
	gone := Memory{Base: &Base{Version: "100", Deleted: true}, GapFrom: written.Add(time.Hour)}
	goneInTheGap := Memory{Base: gone.Base, GapFrom: written.Add(-time.Hour)}
	metBefore := Memory{Base: &Base{Version: "500", MetAt: written.Add(-time.Hour)}}
	metAfter := Memory{Base: &Base{Version: "500", MetAt: written.Add(time.Hour)}}
	has := recordOf("b", "100", "uid")
	testDecide(t, []decideTest{
		{name: "it went after the workload was met", ref: optionalDB, state: has, change: isDeleted, memory: metBefore, policy: onDelete, want: Deleted, unnoted: true},
		{name: "it went before the workload was met", ref: optionalDB, state: has, change: isDeleted, memory: metAfter, policy: onDelete, want: SourceDeleted},
		{name: "the leader has seen it go", ref: optionalDB, state: has, change: isDeleted, memory: alive, policy: onDelete, want: Deleted, unnoted: true},
		{
			name: "it was gone when the leader began to read, as after --roll-on-delete was set", ref: optionalDB, state: has, change: isDeleted,
			memory: gone, policy: onDelete, want: SourceDeleted,
		},
		{
			name: "it went while nobody led, and the workload wanted it", ref: optionalDB, state: states(has, editedAt(-time.Minute)), change: isDeleted,
			memory: goneInTheGap, policy: onDelete, want: Deleted, unnoted: true,
		},
		{
			name: "it went while nobody led, before the workload was last written, which has no record", ref: optionalDB, state: editedAt(time.Minute),
			change: isDeleted, memory: goneInTheGap, policy: onDelete, want: SourceDeleted,
		},
		{
			name: "it went before the workload opted in", ref: optionalDB, state: optsIn("101", time.Minute), change: isDeleted,
			memory: alive, policy: onDelete, want: SourceDeleted,
		},
		{
			name: "it went after the workload opted in", ref: optionalDB, state: optsIn("101", -time.Minute), change: isDeleted,
			memory: gone, policy: onDelete, want: Deleted, unnoted: true,
		},
		{name: "it is noted", ref: optionalDB, state: owesDeletion, change: isDeleted, memory: gone, policy: onDelete, want: Deleted},
		{name: "it is noted, and the stream has forgotten it", ref: optionalDB, state: owesDeletion, change: isUnknown, policy: onDelete, want: Deleted},
	})
}

// So does an appearance.
func TestDecideRollsForAnAppearanceThatIsNews(t *testing.T) {
	// It was gone, and is back with what it had.
	returned := func(c *events.Change) {
		isRecreated(c)
		c.CreatedAt = "140"
	}
	absent := Memory{Base: &Base{}, GapFrom: written.Add(-time.Hour)}
	returnedLive := Memory{Base: &Base{Version: "139"}, GapFrom: written.Add(time.Hour)}
	returnedBefore := Memory{Base: &Base{Version: "140"}, GapFrom: written.Add(time.Hour)}
	midway := func(w *workload.Workload) { w.TemplateVersion = "120" }
	testDecide(t, []decideTest{
		{name: "the leader has seen it appear", ref: optionalDB, change: isCreated, memory: absent, want: Appeared, unnoted: true},
		{name: "it is noted", ref: optionalDB, state: owesTo("uid"), change: isCreated, memory: wasThere, want: Appeared},
		{
			name: "it is back, and the template is from in between", ref: optionalDB, state: midway, change: returned, memory: returnedLive,
			want: Appeared, unnoted: true,
		},
		{
			name: "it is back after the workload was rolled without it", ref: optionalDB, change: returned, memory: returnedBefore, want: Appeared,
			state: entryOf(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("b"), Version: "100", UID: "uid"})),
		},
	})
}

// And so does a re-creation, if it is to roll anything.
func TestDecideRollsForARecreationThatIsNews(t *testing.T) {
	always := Policy{Create: CreateAlways}
	live := Memory{Base: &Base{Version: "139"}, GapFrom: written.Add(time.Hour)}
	before := Memory{Base: &Base{Version: "140"}, GapFrom: written.Add(time.Hour)}
	has := recordOf("b", "90", "uid")
	testDecide(t, []decideTest{
		{name: "the leader has seen it", state: has, change: isRecreated, memory: live, policy: always, want: Appeared, unnoted: true},
		{
			name: "it was there, as after --roll-on-create=always was set", state: has, change: isRecreated, memory: before, policy: always,
			want: SameContent, records: "90",
		},
		{
			name: "it is noted, and the template is from in between", change: isRecreated, memory: before, policy: always, want: Appeared,
			state: states(owesTo("another"), func(w *workload.Workload) { w.TemplateVersion = "120" }),
		},
		{
			name: "the workload was rolled for it", state: recordOf("b", "140", "another"), change: isRecreated, memory: live, policy: always,
			want: AlreadyRolled,
		},
	})
}
