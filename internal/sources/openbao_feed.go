package sources

import (
	"context"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// addStores has the watcher watch secret stores as well, where it is to.
func (w *Watcher) addStores() error {
	if !w.options.OpenBao.Enabled() {
		return nil
	}
	options := w.options.OpenBao
	options.Known = w.knownPaths
	if w.options.Dynamic != nil {
		options.Referenced = w.referencedPaths
	}
	options.Logger, options.Meter, options.Now = w.log, w.options.Meter, w.options.Now
	feed, err := openbao.New(options)
	if err != nil {
		return err
	}
	w.feed, w.sightings = feed, newSightings()
	w.assessors[events.KindOpenBao] = w.assessStore
	return nil
}

// watchStores runs until the context is done, or the feed cannot go on.
func (w *Watcher) watchStores(ctx context.Context) error {
	if w.feed == nil {
		return nil
	}
	if err := w.feed.Run(ctx, w.sight); err != nil {
		return fmt.Errorf("watching secret stores: %w", err)
	}
	return nil
}

// sight takes what the feed saw. What the stream says already goes no further.
func (w *Watcher) sight(seen openbao.Observation) bool {
	source := seen.Path.Source()
	if before := w.ledger.get(source); isOfStore(before) && settled(before, seen) {
		return true
	}
	if !w.sightings.add(seen) {
		return false
	}
	w.pending.add(source, false)
	return true
}

// assessStore is the assessor of secrets in stores.
func (w *Watcher) assessStore(source events.Source, before *last, _ queueEntry) (events.Change, bool) {
	seen := w.sightings.get(source)
	if seen == nil {
		return events.Change{}, false
	}
	change, worthSaying := compareStore(before, *seen, w.sightings.firstOf(seen.Path))
	if !worthSaying {
		w.sightings.done(source, seen)
		return events.Change{}, false
	}
	print := w.ring.fingerprint(source, storeContent(change))[0]
	change.Fingerprint, change.Trace = print.all.text(print.keyID), seen.Trace
	return change, true
}

// notePublished forgets what was seen of a secret in a store once the stream says it, and takes note of when that was.
func (w *Watcher) notePublished(source events.Source, entry *last) {
	if w.sightings == nil || source.Kind != events.KindOpenBao || entry.more == nil || entry.store == nil {
		return
	}
	w.sightings.published(source, entry.store.seenAt)
	if seen := w.sightings.get(source); seen != nil && settled(entry, *seen) {
		w.sightings.done(source, seen)
	}
}

// knownPaths lists the secrets of a mount that exist, as far as the stream knows.
func (w *Watcher) knownPaths(store, namespace, mount string) []string {
	var paths []string
	for _, source := range w.ledger.sources() {
		path, err := source.StorePath()
		if err == nil && path.Store == store && path.Namespace == namespace && path.Mount == mount {
			paths = append(paths, path.Path)
		}
	}
	return paths
}
