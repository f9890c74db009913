package sources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

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
