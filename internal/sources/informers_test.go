package sources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestSweepFindsSourcesThatWereDeletedWhileNoWatcherRan(t *testing.T) {
	known := newLedger()
	bank := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "db"}
	for _, source := range []events.Source{
		testSource, otherSource, bank,
		{Kind: events.KindSecret, Namespace: "dev", Name: "db"},
		{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"},
	} {
		known.set(source, lastOf(1, events.VerbObserved))
	}
	known.set(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "gone"}, lastOf(1, events.VerbDeleted))
	selector, err := labels.Parse("team=a")
	testkit.Must(t, err)
	pending := newPendingSources(time.Now)
	defer pending.shutDown()
	// A namespace that is gone with its objects has no labels to be selected by.
	set := &informerSet{
		ledger: known, cached: cacheOf(&kinds.Object{Source: testSource}), pending: pending,
		scope: scope{names: []string{"shop", "bank", "dev"}, ignored: []string{"dev"}, selected: newNamespaceFilter(fake.NewClientset(), selector, nil)},
	}
	set.sweep(events.KindSecret)
	testkit.WantEqual(t, "queued", []events.Source{bank, otherSource}, queuedIn(pending))

	a := assessorOf(t, known, set.scope, objectOf(t, "u", 1, "one"))
	if found := a.assess(bank, known.get(bank), queueEntry{}); !found.publish || found.change.Verb != events.VerbDeleted {
		t.Errorf("of a source that is gone: %+v", found)
	}
	if found := a.assess(testSource, known.get(testSource), queueEntry{}); found.publish {
		t.Errorf("of a source that is not selected any more: event %+v", found.change)
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
	testkit.WantEqual(t, "events", []string{"secret/db observed u1/1 {a b} []"}, b.history())
}
