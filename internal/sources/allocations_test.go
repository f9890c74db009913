package sources

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// allocationsOfAChange is how many allocations a change of a Secret with two keys costs the watcher: from the object that the API server sends
// until the event is encoded. It does not include those of the API server's client and of the stream. The number is for the race detector, which
// adds a few.
const allocationsOfAChange = 137

func TestAChangeCostsTheWatcherNoMoreAllocationsThanBefore(t *testing.T) {
	const times = 100
	r := newSecretTurns(t, times+2)
	r.turn() // It is only observed.
	if got := testing.AllocsPerRun(times, r.turn); got > allocationsOfAChange*1.1 {
		t.Errorf("a change costs %.0f allocations, a tenth more than %d", got, allocationsOfAChange)
	}
	if want := uint64(times + 2); r.published != want || r.verb != events.VerbChanged {
		t.Errorf("%d events, the last one %s, want %d and changed", r.published, r.verb, want)
	}
}

// secretTurns is a Secret that changes again and again, and what the watcher does with it.
type secretTurns struct {
	testing.TB
	secrets    []*corev1.Secret
	reduce     cache.TransformFunc
	cached     cache.Indexer
	pending    *pendingSources
	reconciler *reconciler
	published  uint64
	verb       events.Verb
}

func newSecretTurns(tb testing.TB, turns int) *secretTurns {
	tb.Helper()
	kind := kindOf(tb, events.KindSecret)
	r := &secretTurns{
		TB: tb, reduce: kinds.Transform(kind, ringOf(tb), annotations.Default()), pending: newPendingSources(time.Now),
		cached: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	for i := range turns {
		secret := secretOf("shop", "db", "u", fmt.Sprint(100+i), fmt.Sprint(i))
		at := metav1.NewTime(epoch.Add(time.Duration(i) * time.Minute))
		secret.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &at}}
		r.secrets = append(r.secrets, secret)
	}
	tb.Cleanup(r.pending.shutDown)
	known, log := newLedger(), slog.New(slog.DiscardHandler)
	set := &informerSet{scope: scope{selected: &namespaceFilter{}}}
	r.reconciler = &reconciler{
		cluster: testCluster, now: time.Now, ledger: known, throttle: newThrottle(1<<30, time.Now, log), sightings: newSightings(),
		pending: r.pending, informers: set, readiness: complete(),
		assessors: map[events.Kind]assessor{events.KindSecret: &objectAssessor{
			kind: kind, informers: set, ledger: known, absence: &absence{known: known}, pending: r.pending, now: time.Now,
			view: kinds.View{Cached: kinds.Cache{events.KindSecret: {r.cached}}, Now: time.Now},
		}},
		publisher: &publisher{bus: r, ledger: known, metrics: unmeasured(tb, known), tracer: tracenoop.NewTracerProvider().Tracer(""), log: log},
	}
	return r
}

// turn takes the next state of the Secret to the stream.
func (r *secretTurns) turn() {
	seen, err := r.reduce(r.secrets[r.published])
	if err == nil {
		err = r.cached.Update(seen)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.pending.add(testSource)
	source, entry, _ := r.pending.take()
	if err := r.reconciler.reconcile(r.Context(), source, &entry); err != nil {
		r.Fatal(err)
	}
	r.pending.done(source)
}

// PublishChange encodes the change as the bus does.
func (r *secretTurns) PublishChange(_ context.Context, change events.Change, expected uint64) (uint64, error) {
	if expected != r.published {
		r.Errorf("published as the successor of %d, want %d", expected, r.published)
	}
	e, err := change.Event()
	if err == nil {
		_, err = events.ToMsg(e, events.Subject(change.Cluster, change.Source))
	}
	r.published, r.verb = r.published+1, change.Verb
	return r.published, err
}
