package sources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

func TestSweepFindsWhatWasDeletedWhileNobodyLooked(t *testing.T) {
	known := newLedger(nil)
	outOfScope, otherKind := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "db"}, events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	for _, source := range []events.Source{testSource, otherSource, outOfScope, otherKind} {
		known.set(source, &lastEvent{verb: events.VerbObserved})
	}
	known.set(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "gone"}, &lastEvent{verb: events.VerbDeleted})
	var gone []events.Source
	s := &sweeper{
		ledger: known, cached: cacheOf(t, &object{source: testSource}), gone: func(source events.Source) { gone = append(gone, source) },
		scope: scope{names: []string{"shop"}, selected: newNamespaceFilter(nil, labels.Everything(), nil)},
	}
	s.sweep(events.KindSecret)
	if diff := cmp.Diff([]events.Source{otherSource}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

func TestSweepLeavesIgnoredNamespacesAlone(t *testing.T) {
	known := newLedger(nil)
	known.set(testSource, &lastEvent{verb: events.VerbObserved})
	s := &sweeper{
		ledger: known, cached: cacheOf(t), gone: func(source events.Source) { t.Errorf("%v is gone", source) },
		scope: scope{ignored: []string{testSource.Namespace}, selected: newNamespaceFilter(nil, labels.Everything(), nil)},
	}
	s.sweep(testSource.Kind)
}

// TestSweepFindsWhatWasDeletedInANamespaceThatIsNotSelected deletes a namespace with its objects, so that it has no labels to be selected by.
func TestSweepFindsWhatWasDeletedInANamespaceThatIsNotSelected(t *testing.T) {
	selector, err := labels.Parse("team=a")
	if err != nil {
		t.Fatal(err)
	}
	known := newLedger(nil)
	there := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "there"}
	for _, source := range []events.Source{testSource, there} {
		known.set(source, &lastEvent{verb: events.VerbObserved})
	}
	within := scope{selected: newNamespaceFilter(fake.NewClientset(), selector, nil)}
	v := viewOf(t, epoch, &object{source: there})
	var gone []events.Source
	s := &sweeper{ledger: known, cached: v.cached, scope: within, gone: func(source events.Source) { gone = append(gone, source) }}
	s.sweep(events.KindSecret)
	if diff := cmp.Diff([]events.Source{testSource}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	assess := assessObjects(secretSource, within, v.view)
	if change, ok := assess(testSource, known.get(testSource), false); !ok || change.Verb != events.VerbDeleted {
		t.Errorf("of a source that is gone: event %+v, %t", change, ok)
	}
	if change, ok := assess(there, known.get(there), false); ok {
		t.Errorf("of a source that is not selected any more: event %+v", change)
	}
}

func TestWhatAnOutdatedListLacksIsNotGone(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version string // of the first list
		want    bool
	}{
		{"the list is newer than the last event", "101", true},
		{"the list is as new", "100", true},
		{"the list is older", "95", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known := newLedger(nil)
			known.set(testSource, eventAt(3, "u", "100", "100"))
			v := viewOf(t, epoch)
			v.version = func(events.Kind, string) string { return tt.version }
			v.doubted = newDoubts(known, v.now, v.recheck).about
			within := scope{selected: newNamespaceFilter(nil, labels.Everything(), nil)}
			assess := assessObjects(secretSource, within, v.view)
			s := &sweeper{ledger: known, cached: v.cached, scope: within, gone: func(source events.Source) {
				if change, ok := assess(source, known.get(source), false); ok != tt.want {
					t.Errorf("event %+v, %t", change, ok)
				}
			}}
			s.sweep(events.KindSecret)
			if again := len(v.rechecks) == 1; again == tt.want {
				t.Errorf("it is looked at again: %v", v.rechecks)
			}
		})
	}
}
