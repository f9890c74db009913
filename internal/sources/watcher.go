package sources

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
)

// Watcher publishes an event for each change of a source in scope. Make one with New. It wires the parts, which own their
// state.
type Watcher struct {
	options   Options
	log       *slog.Logger
	readiness readiness
	ledger    *ledger
	pending   *pendingSources
	throttle  *throttle
	sightings *sightings
	metrics   *metrics
	cached    objectCache
	informers *informerSet
	sweeper   *sweeper
	absence   *absence
	doubts    *doubts
	assessors map[events.Kind]assessor
	// stores is nil if no secret stores are watched.
	stores *storeKind
}

// New checks the options and reads the key file.
func New(options Options) (*Watcher, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	ring, err := loadKeyring(options.KeyFile)
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		options:   options,
		log:       options.Logger.With("component", "watcher"),
		pending:   newPendingSources(options.Now),
		throttle:  newThrottle(options.NamespaceBudget, options.Now, options.Logger.With("component", "watcher")),
		sightings: newSightings(),
		cached:    make(objectCache),
		assessors: make(map[events.Kind]assessor),
	}
	w.ledger = newLedger(map[events.Kind]func(events.Source, *lastEvent){
		events.KindOpenBao: w.sightings.recorded,
		// The content of its pods is settled once it is on the stream.
		events.KindSecretProviderClass: func(source events.Source, _ *lastEvent) { w.notice(source) },
	})
	w.doubts = newDoubts(w.ledger, options.Now, w.pending.addAfter)
	w.absence = &absence{scope: options.scope(), known: w.ledger}
	if err := w.wire(ring); err != nil {
		w.pending.shutDown()
		return nil, err
	}
	return w, nil
}

func (w *Watcher) wire(ring *keyring) error {
	if err := w.addObjects(ring); err != nil {
		return err
	}
	var err error
	if w.metrics, err = newMetrics(w.options.Meter, w.pending.length, w.throttle.length, w.ledger, w.sees); err != nil {
		return fmt.Errorf("making metrics: %w", err)
	}
	return w.addStores(ring)
}

// addObjects adds the kinds whose sources are objects in the cluster.
func (w *Watcher) addObjects(ring *keyring) error {
	kinds, err := selectSources(w.options.Kinds)
	if err != nil {
		return err
	}
	selector, err := labels.Parse(w.options.NamespaceSelector)
	if err != nil {
		return fmt.Errorf("--namespace-selector: %q, want a label selector: %w", w.options.NamespaceSelector, err)
	}
	keys, err := annotations.Parse(w.options.ReloaderAnnotations)
	if err != nil {
		return err
	}
	within := scope{
		names: w.options.Namespaces, ignored: w.options.IgnoreNamespaces,
		selected: newNamespaceFilter(w.options.Client, selector, w.addNamespace),
	}
	failures := &watchErrors{readiness: &w.readiness, now: w.options.Now, log: w.log}
	w.sweeper = &sweeper{ledger: w.ledger, scope: within, cached: w.cached, gone: w.notice}
	w.informers = &informerSet{
		scope: within, dynamic: w.options.Dynamic, lookAgain: w.options.LookAgain, errors: failures, log: w.log, listed: w.sweeper.sweep,
	}
	contents := newPodContents()
	maker := &informerMaker{
		client: w.options.Client, dynamic: w.options.Dynamic, ring: ring, keys: keys, selector: w.options.Selector, ignored: within.ignored,
		isNew: w.absence.isNew, noticed: w.notice, created: w.pending.addCreated, gone: w.pending.addGone, contents: contents, errors: failures,
	}
	eyes := view{
		cached: w.cached, contents: contents, ring: ring, now: w.options.Now, hasListed: w.informers.hasListed,
		version: w.informers.version, doubted: w.doubts.about,
		isRecent: w.absence.isRecent, recheck: w.pending.addAfter, unreadable: w.warnUnreadable,
	}
	for _, kind := range withParts(kinds) {
		made, err := maker.makeAll(kind, within.listed())
		if err != nil {
			return err
		}
		w.informers.kinds = append(w.informers.kinds, made)
		for _, informer := range made.each {
			w.cached[kind.kind] = append(w.cached[kind.kind], informer.GetIndexer())
		}
		if kind.assess != nil {
			w.assessors[kind.kind] = assessObjects(kind, within, eyes)
		}
	}
	return nil
}

// addStores adds the kind of the secrets in stores, if any are watched.
func (w *Watcher) addStores(ring *keyring) error {
	if !w.options.OpenBao.Enabled() {
		return nil
	}
	options := w.options.OpenBao
	options.Logger, options.Meter, options.Now = w.log, w.options.Meter, w.options.Now
	if w.options.Dynamic != nil {
		read := &references{client: w.options.Dynamic, namespaces: w.informers.scope.listed(), ignored: w.options.IgnoreNamespaces, log: w.log}
		options.Referenced = read.list
	}
	var err error
	if w.stores, err = newStoreKind(options, w.sightings, w.ledger, ring, w.notice); err != nil {
		return err
	}
	w.assessors[events.KindOpenBao] = w.stores.assess
	return nil
}

// addNamespace queues the sources of a namespace that came into scope. The objects of a namespace that was created are new, too: they may have been
// seen before it, and were left alone then.
func (w *Watcher) addNamespace(namespace string, as arrival) {
	for _, found := range w.cached.inNamespace(namespace) {
		if found.about().Name == "" {
			continue // The status cannot be read.
		}
		w.pending.add(found.about(), as != byLabel && w.absence.isNew(found, as == byList))
	}
}

func (w *Watcher) notice(source events.Source) { w.pending.add(source, false) }

func (w *Watcher) warnUnreadable(source events.Source) {
	w.log.WarnContext(context.Background(), "cannot read the status of an object; ignoring it",
		"source", source.String(), "namespace", source.Namespace)
}

// Ready returns nil once every source in scope has been seen and is on the stream, and the receivers of the secret stores listen. Otherwise it
// returns an error that says what is missing. It does not wait for a store that cannot be read, or for a custom kind that the API server fails to
// list, unless a permission is missing, because everything else is still watched.
func (w *Watcher) Ready() error {
	if err := w.readiness.problem(); err != nil || w.stores == nil {
		return err
	}
	return w.stores.feed.Ready()
}

// Run publishes to the bus until ctx is done, and then finishes the events in progress. It returns nil if it ended because ctx is done. It must be
// called only once.
func (w *Watcher) Run(ctx context.Context, bus *events.Bus) error {
	var running, feeding sync.WaitGroup
	defer running.Wait()
	// Deferred calls run in reverse: everything that the feed has received is queued before the queue is shut down.
	defer w.pending.shutDown()
	defer feeding.Wait()
	reader := &ledgerReader{
		bus: bus, cluster: w.options.Cluster, kinds: slices.Collect(maps.Keys(w.assessors)), ledger: w.ledger, now: w.options.Now, log: w.log,
	}
	if !reader.readAll(ctx) || !w.absence.read(ctx, bus, w.options.Now(), w.log) {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.informers.start(ctx, &running); err != nil {
		return err
	}
	var failure error
	if w.stores != nil {
		feeding.Go(func() {
			defer stop()
			failure = w.stores.run(ctx)
		})
	}
	w.informers.waitForWriters(ctx)
	w.work(ctx, &running, reader, bus)
	lost := make(chan struct{}, 1)
	w.watchStream(ctx, &running, reader, bus, lost)
	w.awaitComplete(ctx)
	w.attend(ctx, &running, bus, lost)
	<-ctx.Done()
	feeding.Wait()
	return failure
}

// work starts the workers.
func (w *Watcher) work(ctx context.Context, running *sync.WaitGroup, reader *ledgerReader, bus *events.Bus) {
	reconciler := &reconciler{
		cluster: w.options.Cluster, now: w.options.Now, selector: w.options.Selector, assessors: w.assessors, ledger: w.ledger, reader: reader,
		throttle: w.throttle, sightings: w.sightings, notice: w.notice, settled: w.readiness.complete.Load,
		doubted: w.doubts.isOpen, hasListed: w.informers.hasListed,
		publisher: &publisher{bus: bus, ledger: w.ledger, metrics: w.metrics, tracer: w.options.Tracer, log: w.log},
	}
	for range w.options.Workers {
		one := &worker{
			pending: w.pending, reconcile: reconciler.reconcile, progress: w.options.Progress(), metrics: w.metrics, log: w.log,
		}
		running.Go(func() { one.run(ctx) })
	}
}

// watchStream keeps the ledger in line with the stream until ctx is done. It sends to lost when the stream has lost events.
func (w *Watcher) watchStream(ctx context.Context, running *sync.WaitGroup, reader *ledgerReader, bus *events.Bus, lost chan<- struct{}) {
	signal := func(to chan<- struct{}) {
		select {
		case to <- struct{}{}:
		default: // A signal is already waiting.
		}
	}
	recovery := &recovery{
		bus: bus, reader: reader, interval: w.options.CheckStream, watched: w.watches, notice: w.notice,
		lost: func() { signal(lost) }, metrics: w.metrics, log: w.log,
	}
	reconnected := make(chan struct{}, 1)
	running.Go(func() { bus.OnReconnect(ctx, func() { signal(reconnected) }) })
	running.Go(func() { recovery.run(ctx, reconnected) })
	running.Go(func() { forgetTombstones(ctx, w.ledger, w.options.Now) })
}

// attend records on the stream, until ctx is done, the time up to which the objects in scope are watched.
func (w *Watcher) attend(ctx context.Context, running *sync.WaitGroup, bus *events.Bus, lost <-chan struct{}) {
	if !w.readiness.complete.Load() || len(w.absence.scope.Kinds) == 0 {
		return
	}
	one := &attendance{
		bus: bus, scope: w.absence.scope, quiet: w.pending.quiet, publishedUntil: w.pending.publishedUntil, now: w.options.Now, log: w.log,
		watching: func() bool { return w.readiness.isWatching(w.options.Now()) },
	}
	running.Go(func() { one.run(ctx, lost) })
}

// watches reports whether this watcher publishes the events of a source, and has listed its kind.
func (w *Watcher) watches(source events.Source) bool {
	return source.Kind == events.KindOpenBao || w.informers.hasListed(source.Kind) && w.informers.scope.includes(source.Namespace)
}

// sees reports whether a source is in a store, or an object that is in scope and that this watcher has seen.
func (w *Watcher) sees(source events.Source) bool {
	return source.Kind == events.KindOpenBao || w.informers.scope.includes(source.Namespace) && w.cached.lookup(source) != nil
}

// awaitComplete blocks until every source has been seen and is on the stream, or ctx is done.
func (w *Watcher) awaitComplete(ctx context.Context) {
	if !w.informers.waitForSync(ctx) {
		return
	}
	// If a source changed before its first event, that event would be observed, and roll nothing.
	select {
	case <-ctx.Done():
		return
	case <-w.pending.quiet():
	}
	w.readiness.complete.Store(true)
	w.log.InfoContext(ctx, "all sources seen", "sources", len(w.ledger.sources()))
}
