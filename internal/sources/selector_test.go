package sources

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

func TestWatcherLeavesAloneWhatItsSelectorDoesNotSelectAnyMore(t *testing.T) {
	web := secretOf("shop", "web", "u2", "2", "one")
	web.Labels = map[string]string{"team": "a"}
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), web)
	b.ready(b.options())()
	b.eventually("both are observed", func() bool { return len(b.history()) == 2 })
	options := b.watchful()
	options.Selector = "team=a"
	defer b.ready(options)()
	if got := b.history(); len(got) != 2 {
		t.Errorf("there are also %v", got[2:])
	}
	t.Run("and says what is deleted while it runs", func(t *testing.T) {
		b.delete("shop", "web")
		b.eventually("the deletion is published", func() bool { return len(b.history()) == 3 })
		want := map[string]string{"secret/db": "observed u1/1 {a b} []", "secret/web": "deleted u2/2 {a b} []"}
		b.wantState(want)
		b.purge()
		b.wantState(want)
	})
}

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
