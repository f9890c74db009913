package sources

import (
	"context"
	"fmt"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeKind is the kind of the secrets in stores. It turns what the feed observes into pending sources.
type storeKind struct {
	feed      *openbao.Feed
	sightings *sightings
	restores  *restores
	ledger    *ledger
	ring      *keyring
	noticed   func(source events.Source)
}

// newStoreKind makes the feed. It sets Known of the options, which the ledger answers.
func newStoreKind(options openbao.Options, seen *sightings, known *ledger, ring *keyring, noticed func(events.Source)) (*storeKind, error) {
	s := &storeKind{sightings: seen, restores: newRestores(), ledger: known, ring: ring, noticed: noticed}
	options.Known = s.knownPaths
	var err error
	s.feed, err = openbao.New(options)
	return s, err
}

// run watches the stores until ctx is done or the feed fails.
func (s *storeKind) run(ctx context.Context) error {
	if err := s.feed.Run(ctx, s.sight); err != nil {
		return fmt.Errorf("watching secret stores: %w", err)
	}
	return nil
}

// sight stores an observation, and returns false if there is no room for it. It ignores what is already on the stream.
func (s *storeKind) sight(seen openbao.Observation) bool {
	source := seen.Path.Source()
	before := s.ledger.get(source)
	seen.Lasting = s.restores.lasts(source, before, seen)
	if isKnown(before, seen) {
		return true
	}
	if !s.sightings.add(seen) {
		return false
	}
	s.noticed(source)
	return true
}

// assess is the assessor of the kind.
func (s *storeKind) assess(source events.Source, before *lastEvent, _ bool) (events.Change, bool) {
	seen := s.sightings.get(source)
	if seen == nil {
		return before.again()
	}
	change, ok := compareStore(before, *seen, s.sightings.firstOf(seen.Path))
	if !ok {
		s.sightings.done(source, seen)
		return before.again()
	}
	current := s.ring.fingerprint(source, storeContent(change))[0]
	change.Fingerprint, change.Trace = current.all.Text(current.keyID), seen.Trace
	return change, true
}

// knownPaths lists the secrets of a mount that exist according to the stream.
func (s *storeKind) knownPaths(store, namespace, mount string) []string {
	var paths []string
	for _, source := range s.ledger.sources() {
		path, err := source.StorePath()
		if err == nil && path.Store == store && path.Namespace == namespace && path.Mount == mount {
			paths = append(paths, path.Path)
		}
	}
	return paths
}
