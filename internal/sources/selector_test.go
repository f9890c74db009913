package sources

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
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

func TestWhatIsNotSelectedIsGoneOnlyIfItWasSeenToGo(t *testing.T) {
	gone := func(_ events.Source, before *lastEvent, _ bool) (events.Change, bool) {
		return before.content(events.VerbDeleted), true
	}
	tombstone := deletedAt(3, "u", "5")
	for _, tt := range []struct {
		name     string
		selector string
		before   *lastEvent
		entry    queueEntry
		want     int
	}{
		{"without a selector it is gone", "", eventAt(3, "u", "5", "5"), queueEntry{}, 1},
		{"with one it may lack the labels", "team=a", eventAt(3, "u", "5", "5"), queueEntry{}, 0},
		{"with one it is gone if it was seen to go", "team=a", eventAt(3, "u", "5", "5"), queueEntry{gone: true}, 1},
		{"the event that the stream has lost is published again", "team=a", lostAt(0, eventAt(3, "u", "5", "5")), queueEntry{}, 1},
		{"so is a deletion", "team=a", lostAt(0, tombstone), queueEntry{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := &publications{}
			r, _ := reconcilerOf(t, bus, gone)
			r.selector = tt.selector
			r.ledger.set(testSource, tt.before)
			must(t, r.reconcile(t.Context(), testSource, &tt.entry))
			if len(bus.published) != tt.want {
				t.Errorf("published %+v, want %d events", bus.published, tt.want)
			}
		})
	}
}
