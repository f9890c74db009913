package sources

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestSweepFindsWhatWasDeletedWhileNobodyLooked(t *testing.T) {
	known := newLedger(nil)
	for _, source := range []events.Source{
		testSource, otherSource,
		{Kind: events.KindSecret, Namespace: "bank", Name: "db"},
		{Kind: events.KindSecret, Namespace: "dev", Name: "db"},
		{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"},
	} {
		known.set(source, lastOf(1, events.VerbObserved))
	}
	known.set(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "gone"}, lastOf(1, events.VerbDeleted))
	var gone []events.Source
	s := &sweeper{
		ledger: known, cached: cacheOf(t, &object{source: testSource}), gone: func(source events.Source) { gone = append(gone, source) },
		scope: scope{names: []string{"shop", "dev"}, ignored: []string{"dev"}, selected: newNamespaceFilter(nil, labels.Everything(), nil)},
	}
	s.sweep(events.KindSecret)
	wantEqual(t, "gone", []events.Source{otherSource}, gone)
}

// TestSweepFindsWhatWasDeletedInANamespaceThatIsNotSelected deletes a namespace with its objects, so that it has no labels to be selected by.
func TestSweepFindsWhatWasDeletedInANamespaceThatIsNotSelected(t *testing.T) {
	selector, err := labels.Parse("team=a")
	must(t, err)
	known := newLedger(nil)
	there := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "there"}
	for _, source := range []events.Source{testSource, there} {
		known.set(source, lastOf(1, events.VerbObserved))
	}
	within := scope{selected: newNamespaceFilter(fake.NewClientset(), selector, nil)}
	v := viewOf(t, epoch, &object{source: there})
	var gone []events.Source
	s := &sweeper{ledger: known, cached: v.cached, scope: within, gone: func(source events.Source) { gone = append(gone, source) }}
	s.sweep(events.KindSecret)
	wantEqual(t, "gone", []events.Source{testSource}, gone)
	assess := assessObjects(secretSource, within, v.view)
	if change, ok := assess(testSource, known.get(testSource), false); !ok || change.Verb != events.VerbDeleted {
		t.Errorf("of a source that is gone: event %+v, %t", change, ok)
	}
	if change, ok := assess(there, known.get(there), false); ok {
		t.Errorf("of a source that is not selected any more: event %+v", change)
	}
}

func TestAStartFindsNoDeletionInAListThatIsBehind(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"))
	b.ready(b.options())()
	b.client.PrependReactor("list", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		// From resourceVersion 0, the cache of an API server may answer that does not have the Secret yet.
		request, ok := action.(k8stesting.ListActionImpl)
		return ok && request.ListOptions.ResourceVersion == "0", &corev1.SecretList{}, nil
	})
	b.ready(b.options())()
	wantEqual(t, "events", []string{"secret/db observed u1/1 {a b} []"}, b.history())
}

func TestTombstonesAreForgottenWhenTheStreamHasDroppedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := newLedger(nil)
		names := func() map[string]bool {
			held := make(map[string]bool)
			for source := range known.all() {
				held[source.Name] = true
			}
			return held
		}
		for name, verb := range map[string]events.Verb{"there": events.VerbChanged, "gone": events.VerbDeleted} {
			source := testSource
			source.Name = name
			known.set(source, mustLast(t, events.Change{Verb: verb, Fingerprint: printed("0a", "1"), Time: time.Now().Add(time.Minute)}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { forgetTombstones(ctx, known, time.Now) })
		<-time.After(events.TombstoneTTL + time.Second)
		wantEqual(t, "before they are dropped", map[string]bool{"there": true, "gone": true}, names())
		<-time.After(tombstoneInterval)
		wantEqual(t, "after they were dropped", map[string]bool{"there": true}, names())
		stop()
		running.Wait()
	})
}
