package sources

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

// heardOf returns a ledger that has an event of another watcher for testSource, after one that it knows.
func heardOf(known, heard *lastEvent) *ledger {
	l := newLedger(nil)
	if known != nil {
		l.set(testSource, known)
	}
	l.replace(testSource, known, heard)
	return l
}

func TestWhatIsCachedMayBeOlderThanWhatAnotherWatcherHasPublished(t *testing.T) {
	gone := func(seq uint64, uid, version string) *lastEvent {
		return eventOf(seq, events.VerbDeleted, uid, version, "")
	}
	cached := func(uid string, version int) *object { return objectOf(keyringOf(1), uid, version, nil) }
	for _, tt := range []struct {
		name         string
		known, heard *lastEvent
		now          *object
		version      string
		want         bool
	}{
		{"a creation that the cache has not come to", nil, eventAt(3, "u", "10", "10"), nil, "9", true},
		{"a creation that the cache is past", nil, eventAt(3, "u", "10", "10"), nil, "11", false},
		{"a creation that is the last that the cache has seen", nil, eventAt(3, "u", "10", "10"), nil, "10", false},
		{"a creation, while nothing is known of the cache", nil, eventAt(3, "u", "10", "10"), nil, "", true},
		{"another object of the name", eventAt(1, "u", "5", "5"), eventAt(3, "v", "10", "10"), cached("u", 5), "9", true},
		{"another object of the name, and a newer one since", eventAt(1, "u", "5", "5"), eventAt(3, "v", "10", "10"), cached("w", 12), "12", false},
		{"the deletion of what is cached", eventAt(1, "u", "5", "5"), gone(3, "u", "5"), cached("u", 5), "9", true},
		{"the deletion of what is not cached any more", eventAt(1, "u", "5", "5"), gone(3, "u", "5"), nil, "9", false},
		{"a deletion, and another object since", eventAt(1, "u", "5", "5"), gone(3, "u", "5"), cached("v", 9), "9", false},
		{"the event of another cluster, which was known, on a new stream", eventAt(9, "u", "500", "500"), eventAt(1, "u", "500", "500"), nil, "9", false},
		{"an event that cannot be read", nil, unreadableEvent(3), nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := viewOf(t, epoch)
			l := heardOf(tt.known, tt.heard)
			d := newDoubts(l, v.now, v.recheck)
			if got := d.about(testSource, l.get(testSource), tt.now, tt.version); got != tt.want {
				t.Errorf("doubted %t, want %t", got, tt.want)
			}
			if (len(v.rechecks) == 1) != tt.want || (len(d.open) == 1) != tt.want {
				t.Errorf("rechecks %v, open %v", v.rechecks, d.open)
			}
		})
	}
}

func TestADoubtEndsWhereTheCacheGoesOn(t *testing.T) {
	var now time.Time
	v := viewOf(t, epoch)
	l := heardOf(nil, eventAt(3, "u", "500", "500"))
	d := newDoubts(l, func() time.Time { return now }, v.recheck)
	for i, step := range []struct {
		after   time.Duration
		version string
		want    bool
	}{
		{0, "9", true},
		{time.Hour, "9", true},       // It stalls.
		{time.Second, "10", true},    // It may be about to hear more.
		{time.Second, "11", true},    // As before.
		{doubtInterval, "12", false}, // It is past that.
		{time.Second, "12", false},   // The source was compared.
	} {
		now = now.Add(step.after)
		if got := d.about(testSource, l.get(testSource), nil, step.version); got != step.want {
			t.Errorf("step %d: doubted %t, want %t", i, got, step.want)
		}
	}
	if len(d.open) > 0 || len(l.heard) > 0 {
		t.Errorf("it keeps %v and %v", d.open, l.heard)
	}
}

func TestADoubtIsAboutOneEvent(t *testing.T) {
	v := viewOf(t, epoch)
	first := eventAt(3, "u", "10", "10")
	l := heardOf(nil, first)
	d := newDoubts(l, v.now, v.recheck)
	d.about(testSource, first, nil, "9")
	own := eventAt(4, "u", "11", "11")
	l.set(testSource, own)
	if d.about(testSource, own, nil, "9") || len(d.open) > 0 {
		t.Errorf("it doubts what the watcher published itself, and keeps %v", d.open)
	}
	t.Run("which is kept where the stream has lost it", func(t *testing.T) {
		l := heardOf(nil, first)
		lost := missing(first, epoch)
		if !l.replace(testSource, first, lost) || !newDoubts(l, v.now, v.recheck).about(testSource, lost, nil, "9") {
			t.Error("it is not doubted any more")
		}
	})
}

// TestADoubtEndsWithTheLabelOfItsNamespace ends the doubt although the cache stays older than the event: nothing is published for the source anyway.
func TestADoubtEndsWithTheLabelOfItsNamespace(t *testing.T) {
	selector, err := labels.Parse("team=a")
	must(t, err)
	v := viewOf(t, epoch, objectOf(keyringOf(1), "u", 5, nil))
	heard := eventAt(3, "u", "10", "10")
	d := newDoubts(heardOf(nil, heard), v.now, v.recheck)
	v.doubted = d.about
	assess := func(selected labels.Selector) {
		t.Helper()
		within := scope{selected: newNamespaceFilter(fake.NewClientset(), selected, nil)}
		if change, ok := assessObjects(secretSource, within, v.view)(testSource, heard, true); ok {
			t.Errorf("event %+v", change)
		}
	}
	assess(labels.Everything())
	if !d.isOpen(testSource) {
		t.Error("it is not doubted in the first place")
	}
	assess(selector)
	if d.isOpen(testSource) {
		t.Error("it is still doubted")
	}
}

func TestTheLedgerKeepsNoDoubtAboutAForgottenTombstone(t *testing.T) {
	l := heardOf(nil, mustLast(t, events.Change{Verb: events.VerbDeleted, Fingerprint: printed("0a", "1"), Time: epoch.Add(-events.TombstoneTTL)}))
	l.forgetTombstones(epoch)
	if len(l.heard) > 0 {
		t.Errorf("it keeps %v", l.heard)
	}
}

func TestADoubtOutlastsThatTheStreamLosesTheEvent(t *testing.T) {
	heard := eventAt(9, "u", "500", "500")
	l := heardOf(nil, heard)
	again := eventAt(12, "u", "500", "500")
	l.set(testSource, again)
	if !l.isHearsay(testSource, again) {
		t.Error("what was only published again counts as seen")
	}
}
