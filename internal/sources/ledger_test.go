package sources

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

// heardOf returns a ledger that has an event of another watcher for testSource, after one that it knows.
func heardOf(known, heard *kinds.LastEvent) *ledger {
	l := newLedger()
	if known != nil {
		l.set(testSource, known)
	}
	l.replace(testSource, known, heard)
	return l
}

func TestACachedObjectMayBeOlderThanTheEventOfAnotherWatcher(t *testing.T) {
	gone, cached := eventOf(3, events.VerbDeleted, "u", "5", ""), objectOf(t, "u", 5, "one")
	for _, tt := range []struct {
		name         string
		known, heard *kinds.LastEvent
		now          *kinds.Object
		version      string
		want         bool
	}{
		{"a creation that the cache has not come to", nil, eventAt(3, "u", "10", "10"), nil, "9", true},
		{"a creation that is the last that the cache has seen", nil, eventAt(3, "u", "10", "10"), nil, "10", false},
		{"another object of the name", eventAt(1, "u", "5", "5"), eventAt(3, "v", "10", "10"), cached, "9", true},
		{"the deletion of a cached object", eventAt(1, "u", "5", "5"), gone, cached, "9", true},
		{"the deletion of an object that is not cached any more", eventAt(1, "u", "5", "5"), gone, nil, "9", false},
		{"the event of another cluster, which was known, on a new stream", eventAt(9, "u", "500", "500"), eventAt(1, "u", "500", "500"), nil, "9", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := heardOf(tt.known, tt.heard)
			if got := l.isAhead(testSource, l.get(testSource), tt.now, tt.version, epoch); got != tt.want || (len(l.doubts) == 1) != tt.want {
				t.Errorf("ahead %t, want %t; the doubts are %v", got, tt.want, l.doubts)
			}
		})
	}
}

func TestADoubtEndsWhereTheCacheGoesOn(t *testing.T) {
	now, l := epoch, heardOf(nil, eventAt(3, "u", "500", "500"))
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
		if got := l.isAhead(testSource, l.get(testSource), nil, step.version, now); got != step.want {
			t.Errorf("step %d: doubted %t, want %t", i, got, step.want)
		}
	}
	if len(l.doubts) > 0 {
		t.Errorf("it keeps %v", l.doubts)
	}
}

func TestADoubtIsAboutOneEvent(t *testing.T) {
	first := eventAt(3, "u", "10", "10")
	isDoubted := func(l *ledger) bool { return l.isAhead(testSource, l.get(testSource), nil, "9", epoch) }
	t.Run("which this watcher has superseded", func(t *testing.T) {
		l := heardOf(nil, first)
		if l.set(testSource, eventAt(4, "u", "11", "11")); isDoubted(l) {
			t.Error("it doubts its own event")
		}
	})
	t.Run("which this watcher has only published again", func(t *testing.T) {
		l := heardOf(nil, first)
		if l.set(testSource, eventAt(12, "u", "10", "10")); !isDoubted(l) {
			t.Error("it is not doubted any more")
		}
	})
	t.Run("which is forgotten with its tombstone", func(t *testing.T) {
		l := heardOf(nil, mustLast(t, events.Change{Verb: events.VerbDeleted, Fingerprint: fingerprint, Time: epoch.Add(-events.TombstoneTTL)}))
		if l.forgetTombstones(epoch); len(l.doubts) > 0 {
			t.Errorf("it keeps %v", l.doubts)
		}
	})
}

// assessorOf assesses Secrets of which the objects are cached.
func assessorOf(t *testing.T, l *ledger, within scope, objects ...*kinds.Object) *objectAssessor {
	t.Helper()
	pending := newPendingSources(time.Now)
	t.Cleanup(pending.shutDown)
	cached := cacheOf(objects...)
	return &objectAssessor{
		kind: kindOf(t, events.KindSecret), informers: &informerSet{scope: within, cached: cached}, ledger: l, absence: &absence{known: l},
		view: kinds.View{Cached: cached, Queue: pending, Now: func() time.Time { return epoch }},
	}
}

// everything is the scope of all namespaces.
func everything() scope { return scope{selected: newNamespaceFilter(nil, labels.Everything(), nil)} }

// TestADoubtEndsWithTheLabelOfItsNamespace ends the doubt although the cache stays older than the event: nothing is published for the source anyway.
func TestADoubtEndsWithTheLabelOfItsNamespace(t *testing.T) {
	selector, err := labels.Parse("team=a")
	testkit.Must(t, err)
	heard := eventAt(3, "u", "10", "10")
	a := assessorOf(t, heardOf(nil, heard), everything(), objectOf(t, "u", 5, "one"))
	if found := a.assess(testSource, heard, queueEntry{created: true}); found.publish || !found.doubted {
		t.Errorf("assessed as %+v, want doubted", found)
	}
	a.informers.scope.selected = newNamespaceFilter(fake.NewClientset(), selector, nil)
	if found := a.assess(testSource, heard, queueEntry{created: true}); found.publish || found.doubted {
		t.Errorf("assessed as %+v, want no doubt", found)
	}
}

// A pod's status may be listed before its class.
func TestAClassThatIsNotListedYetIsNotDeleted(t *testing.T) {
	a := assessorOf(t, newLedger(), everything())
	a.kind = kindOf(t, events.KindSecretProviderClass)
	class := events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	if found := a.assess(class, lastOf(3, events.VerbObserved), queueEntry{}); found.publish {
		t.Errorf("event %+v", found.change)
	}
}
