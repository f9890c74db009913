package sources

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

func TestAnObjectThatIsNotSelectedIsGoneOnlyIfItWasSeenToGo(t *testing.T) {
	for _, tt := range []struct {
		name     string
		selector string
		before   *kinds.LastEvent
		entry    queueEntry
		want     events.Verb
	}{
		{"without a selector it is gone", "", eventAt(3, "u", "5", "5"), queueEntry{}, events.VerbDeleted},
		{"with one it may lack the labels", "team=a", eventAt(3, "u", "5", "5"), queueEntry{}, ""},
		{"with one it is gone if it was seen to go", "team=a", eventAt(3, "u", "5", "5"), queueEntry{gone: true}, events.VerbDeleted},
		{"the event that the stream has lost is published again", "team=a", lostAt(0, eventAt(3, "u", "5", "5")), queueEntry{}, events.VerbChanged},
		{"so is a deletion", "team=a", lostAt(0, deletedAt(3, "u", "5")), queueEntry{}, events.VerbDeleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := assessorOf(t, newLedger(), everything())
			a.selector = tt.selector
			if found := a.assess(testSource, tt.before, tt.entry); found.publish != (tt.want != "") || found.change.Verb != tt.want {
				t.Errorf("assessed as %+v, want %q", found, tt.want)
			}
		})
	}
}
