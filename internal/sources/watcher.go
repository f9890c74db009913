package sources

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// Watcher publishes an event for each change of a source in scope. Make one with New. It wires the parts, which own their state.
type Watcher struct {
	options   Options
	log       *slog.Logger
	readiness readiness
	ledger    *ledger
	pending   *pendingSources
	throttle  *throttle
	sightings *sightings
	metrics   *metrics
	informers *informerSet
	absence   *absence
	assessors map[events.Kind]assessor
	stores    *storeKind // nil if no secret stores are watched
}

// New checks the options and reads the key file.
func New(options Options) (*Watcher, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	ring, err := options.keyring()
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		options: options, log: options.Logger.With("component", "watcher"), ledger: newLedger(), pending: newPendingSources(options.Now),
		sightings: newSightings(), assessors: make(map[events.Kind]assessor),
	}
	w.throttle = newThrottle(options.NamespaceBudget, options.Now, w.log)
	w.absence = &absence{scope: options.scope(), known: w.ledger}
	if err = w.addObjects(ring); err == nil {
		w.metrics, err = newMetrics(options.Meter, w.pending.length, w.throttle.length, w.ledger, w.informers.sees)
	}
	if err == nil {
		err = w.addStores(ring)
	}
	if err != nil {
		w.pending.shutDown()
		return nil, err
	}
	return w, nil
}

// addObjects adds the kinds whose sources are objects in the cluster.
func (w *Watcher) addObjects(ring *kinds.Keyring) error {
	sources, err := kinds.Select(w.options.Kinds)
	if err != nil {
		return err
	}
	selector, err := labels.Parse(w.options.NamespaceSelector)
	if err != nil {
		return err // Validate has named the flag already.
	}
	keys, err := reloader.Parse(w.options.Reloader.Annotations)
	if err != nil {
		return err
	}
	cached, contents := make(kinds.Cache), kinds.NewPodContents()
	handler := &objectHandler{cached: cached, contents: contents, absence: w.absence, pending: w.pending}
	within := scope{
		names: w.options.Namespaces, ignored: w.options.IgnoreNamespaces, selected: newNamespaceFilter(w.options.Client, selector, handler),
	}
	failures := &watchErrors{readiness: &w.readiness, now: w.options.Now, log: w.log}
	w.informers = &informerSet{
		scope: within, cached: cached, ledger: w.ledger, pending: w.pending, dynamic: w.options.Dynamic, lookAgain: w.options.LookAgain,
		errors: failures, log: w.log,
	}
	common := &informerOptions{
		client: w.options.Client, dynamic: w.options.Dynamic, ring: ring, keys: keys, selector: w.options.Selector, ignored: within.ignored,
		handler: handler,
	}
	watched := kinds.View{Cached: cached, Contents: contents, Ring: ring, Now: w.options.Now, Queue: w.pending, Log: w.log}
	for _, kind := range sources {
		listing := kind.Listing()
		w.informers.add(kind, common)
		if listing.Part != nil {
			w.informers.add(listing.Part, common)
		}
		w.assessors[listing.Kind] = &objectAssessor{kind: kind, informers: w.informers, ledger: w.ledger, absence: w.absence, view: watched}
	}
	return nil
}

// addStores adds the kind of the secrets in stores, if any are watched.
func (w *Watcher) addStores(ring *kinds.Keyring) error {
	if !w.options.OpenBao.Enabled() {
		return nil
	}
	options := w.options.OpenBao
	options.Logger, options.Meter, options.Now = w.log, w.options.Meter, w.options.Now
	if w.options.Dynamic != nil {
		read := &references{client: w.options.Dynamic, namespaces: w.informers.scope.listed(), ignored: w.options.IgnoreNamespaces, log: w.log}
		options.Referenced = read.list
	}
	w.stores = &storeKind{sightings: w.sightings, restores: kinds.NewRestores(), ledger: w.ledger, ring: ring, pending: w.pending}
	options.Known = w.stores.knownPaths
	w.assessors[events.KindOpenBao] = w.stores
	var err error
	w.stores.feed, err = openbao.New(options)
	return err
}

// Ready returns nil once every source in scope has been seen and is on the stream, and the receivers of the secret stores listen. Otherwise, it
// returns an error that names the missing permission or list. It does not wait for a store that cannot be read, or for a custom kind that the API
// server fails to list, unless a permission is missing, because everything else is watched.
func (w *Watcher) Ready() error {
	if err := w.readiness.problem(); err != nil || w.stores == nil {
		return err
	}
	return w.stores.feed.Ready()
}

// Run publishes to the bus until ctx is done, and then finishes the events in progress. It returns nil after the end of ctx. It must be called only
// once.
func (w *Watcher) Run(ctx context.Context, b *bus.Bus) error {
	var running, feeding sync.WaitGroup
	defer running.Wait()
	// Deferred calls run in reverse order: everything that the feed has received is queued before the queue is shut down.
	defer w.pending.shutDown()
	defer feeding.Wait()
	reader := &ledgerReader{
		bus: b, cluster: w.options.Cluster, kinds: slices.Collect(maps.Keys(w.assessors)), ledger: w.ledger, now: w.options.Now, log: w.log,
	}
	if !reader.readAll(ctx) || !w.absence.read(ctx, b, w.options.Now(), w.log) {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.informers.start(ctx, &running)
	var failure error
	if w.stores != nil {
		feeding.Go(func() {
			defer stop()
			if err := w.stores.feed.Run(ctx, w.stores.sight); err != nil {
				failure = fmt.Errorf("watching secret stores: %w", err)
			}
		})
	}
	w.informers.waitForWriters(ctx)
	w.startWorkers(ctx, &running, reader, b)
	lost := make(chan struct{}, 1)
	w.watchStream(ctx, &running, reader, b, lost)
	w.awaitComplete(ctx)
	if w.readiness.complete.Load() && len(w.absence.scope.Kinds) > 0 {
		attended := &attendance{bus: b, scope: w.absence.scope, pending: w.pending, readiness: &w.readiness, now: w.options.Now, log: w.log}
		running.Go(func() { attended.run(ctx, lost) })
	}
	<-ctx.Done()
	feeding.Wait()
	return failure
}

func (w *Watcher) startWorkers(ctx context.Context, running *sync.WaitGroup, reader *ledgerReader, b *bus.Bus) {
	inFlight := bus.NewInFlight(w.options.Workers, w.options.Now)
	reconciler := &reconciler{
		cluster: w.options.Cluster, now: w.options.Now, assessors: w.assessors, ledger: w.ledger, reader: reader, throttle: w.throttle,
		pending: w.pending, sightings: w.sightings, cached: w.informers.cached, informers: w.informers, readiness: &w.readiness,
		publisher: &publisher{
			bus: b, inFlight: inFlight, ledger: w.ledger, metrics: w.metrics, tracer: w.options.Tracer, now: w.options.Now, log: w.log,
		},
	}
	for range w.options.Workers {
		one := &worker{
			pending: w.pending, inFlight: inFlight, reconciler: reconciler, progress: w.options.Progress(), metrics: w.metrics, log: w.log,
		}
		running.Go(func() { one.run(ctx) })
	}
}

// watchStream keeps the ledger in line with the stream until ctx is done. It signals on lost when the stream has lost events.
func (w *Watcher) watchStream(ctx context.Context, running *sync.WaitGroup, reader *ledgerReader, b *bus.Bus, lost chan<- struct{}) {
	recovery := &recovery{
		bus: b, reader: reader, interval: w.options.CheckStream, informers: w.informers, pending: w.pending, lost: lost, metrics: w.metrics,
		log: w.log,
	}
	reconnected := make(chan struct{}, 1)
	running.Go(func() { b.OnReconnect(ctx, reconnected) })
	running.Go(func() { recovery.run(ctx, reconnected) })
	running.Go(func() { reader.forgetTombstones(ctx) })
}

// awaitComplete blocks until every source has been seen and is on the stream, or ctx is done.
func (w *Watcher) awaitComplete(ctx context.Context) {
	if !w.informers.waitForSync(ctx) {
		return
	}
	// If a source changed before its first event, that event would be an observation, and roll nothing.
	select {
	case <-ctx.Done():
		return
	case <-w.pending.quiet():
	}
	w.readiness.complete.Store(true)
	w.log.InfoContext(ctx, "all sources seen", "sources", len(w.ledger.sources()))
}
