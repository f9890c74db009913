package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// Watcher publishes an event for each change of a source in scope. Make one with New.
type Watcher struct {
	options    Options
	log        *slog.Logger
	ring       *Keyring
	bus        *events.Bus
	kinds      []source
	namespaces *namespaceFilter
	stores     map[events.Kind][]cache.SharedIndexInformer
	installs   map[events.Kind]*install // of the custom kinds
	assessors  map[events.Kind]assessor
	ledger     *ledger
	pending    *pendingSources
	metrics    *metrics
	// feed sees the secret stores, and sightings is what it saw. Both are nil where none are watched.
	feed      *openbao.Feed
	sightings *sightings
	synced    atomic.Bool
	denied    sync.Map // resource -> error of the API server, for readiness
}

// New checks the options and reads the key file.
func New(options Options) (*Watcher, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	ring, err := LoadKeyring(options.KeyFile)
	if err != nil {
		return nil, err
	}
	kinds, err := selectSources(options.Kinds)
	if err != nil {
		return nil, err
	}
	selector, err := labels.Parse(options.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("namespace-selector: %w", err)
	}
	w := &Watcher{
		options:   options,
		log:       options.Logger.With("component", "watcher"),
		ring:      ring,
		kinds:     kinds,
		stores:    make(map[events.Kind][]cache.SharedIndexInformer),
		installs:  make(map[events.Kind]*install),
		assessors: make(map[events.Kind]assessor),
		ledger:    newLedger(),
		pending:   newPendingSources(options.Now),
	}
	for _, kind := range kinds {
		w.assessors[kind.kind] = w.assessObject(kind)
		if kind.isCustom() {
			w.installs[kind.kind] = &install{}
		}
	}
	w.namespaces = newNamespaceFilter(options.Client, selector, w.requeueNamespace)
	if w.metrics, err = newMetrics(options.Meter, w.pending.length, w.ledger); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	if err := w.addStores(); err != nil {
		return nil, err
	}
	return w, nil
}

// Ready is nil when every source in scope has been seen once, and the stream knows it; else it says what is missing.
func (w *Watcher) Ready() error {
	if w.synced.Load() {
		if w.feed != nil {
			return w.feed.Ready()
		}
		return nil
	}
	problem := errors.New("the first list of the sources is not complete")
	w.denied.Range(func(_, err any) bool {
		problem = err.(error)
		return false
	})
	return problem
}

// Run publishes to the bus until the context is done. What is being published then is finished first. It returns nil when
// the context ended it. It may be called once.
func (w *Watcher) Run(ctx context.Context, bus *events.Bus) error {
	w.bus = bus
	if err := w.readLedger(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer w.pending.shutDown()

	informing, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.startInformers(informing, &running); err != nil {
		return err
	}
	w.waitForWriters(ctx)
	for range w.options.Workers {
		progress := w.options.Progress()
		running.Go(func() {
			for w.next(ctx, progress) {
			}
		})
	}
	if w.waitForSync(ctx) {
		for _, kind := range w.kinds {
			if w.hasSynced(kind.kind) {
				w.sweep(kind.kind)
			}
		}
		// What changes before it is on the stream is seen there for the first time, and rolls nothing.
		select {
		case <-ctx.Done():
		case <-w.pending.quiet():
		}
		w.synced.Store(true)
		w.log.InfoContext(ctx, "every source has been seen", "sources", len(w.ledger.sources()))
	}
	if err := w.watchStores(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// readLedger reads the last event of every source of the cluster from the stream. It tries until it can.
func (w *Watcher) readLedger(ctx context.Context) error {
	filters := make([]string, 0, len(w.assessors))
	for kind := range w.assessors {
		filters = append(filters, events.KindFilter(w.options.Cluster, kind))
	}
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		err := w.bus.State(ctx, filters, func(stored events.Stored) error {
			w.remember(ctx, stored)
			return nil
		})
		if err == nil {
			return nil
		}
		w.log.ErrorContext(ctx, "the last events cannot be read yet", "err", err, "retry", delay)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// remember takes an event as the last of its subject. One that cannot be read says nothing of its source, which is then
// compared with what was known before; but it is there, and the next event has to supersede it.
func (w *Watcher) remember(ctx context.Context, stored events.Stored) {
	change, err := stored.Change()
	if err == nil {
		var entry *last
		if entry, err = newLast(stored.Seq, change); err == nil {
			w.ledger.set(change.Source, entry)
			w.notePublished(change.Source, entry)
			return
		}
	}
	w.log.WarnContext(ctx, "an event on the stream cannot be read", "subject", stored.Subject, "err", err)
	if address, err := events.ParseSubject(stored.Subject); err == nil {
		w.ledger.supersede(events.Source{Kind: address.Kind, Namespace: address.Namespace, Name: address.Name}, stored.Seq)
	}
}

// sweep queues the sources of a kind that the stream knows and the API server does not: they were deleted while nobody
// looked.
func (w *Watcher) sweep(kind events.Kind) {
	for _, source := range w.ledger.sources() {
		if source.Kind == kind && w.inScope(source) && w.lookup(source) == nil {
			w.pending.add(source, false)
		}
	}
}

func (w *Watcher) inScope(source events.Source) bool {
	if len(w.options.Namespaces) > 0 && !slices.Contains(w.options.Namespaces, source.Namespace) {
		return false
	}
	return w.namespaces.matches(source.Namespace)
}

// requeueNamespace queues all sources of a namespace that has come into scope.
func (w *Watcher) requeueNamespace(namespace string) {
	for _, informers := range w.stores {
		for _, informer := range informers {
			objects, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
			if err != nil {
				continue // the index is there: informers of a factory are made with it
			}
			for _, obj := range objects {
				if seen, ok := obj.(*object); ok {
					w.pending.add(seen.source, false)
				}
			}
		}
	}
}

// lookup gives the object as it was last seen, nil where there is none.
func (w *Watcher) lookup(source events.Source) *object {
	for _, informer := range w.stores[source.Kind] {
		found, ok, err := informer.GetStore().GetByKey(source.Namespace + "/" + source.Name)
		if err == nil && ok {
			if seen, ok := found.(*object); ok {
				return seen
			}
		}
	}
	return nil
}
