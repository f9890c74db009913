package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

const (
	publishTimeout = 10 * time.Second // bounds one attempt to publish, which is repeated until one succeeds or the event is refused
	maxConflicts   = 5                // how often in a row another watcher may publish first before the source waits for a retry
)

// reconciler brings the last event of a source in line with the source.
type reconciler struct {
	cluster string
	now     func() time.Time
	// assessors has an assessor for each watched kind. The ledger contains the last events of these kinds.
	assessors map[events.Kind]assessor
	ledger    *ledger
	reader    *ledgerReader
	publisher *publisher
	throttle  *throttle
	pending   *pendingSources
	sightings *sightings
	cached    kinds.Cache
	informers kindLister
	readiness *readiness
}

// assessor compares a source with the last event on its subject, which is nil if there is none.
type assessor interface {
	assess(source events.Source, before *kinds.LastEvent, entry queueEntry) assessment
}

// kindLister reports whether the first list of a kind has been handled. An informerSet implements it.
type kindLister interface {
	hasListed(kind events.Kind) bool
}

// assessment is the event of a source, or the result that there is none.
type assessment struct {
	// change is the event. Its cluster and source are set later, and usually its time; the zero time means now.
	change events.Change
	// publish says that there is an event to publish. If the stream has lost the last event and nothing has happened since, it is that event.
	publish bool
	doubted bool                 // the cached object may be older than the last event
	seen    *openbao.Observation // of a secret in a store; nil for an object
}

// publishAgain returns the assessment of a source without news.
func publishAgain(before *kinds.LastEvent) assessment {
	change, lost := again(before)
	return assessment{change: change, publish: lost}
}

// turnError means that a source has an event to publish whose turn comes later.
type turnError struct{ after time.Duration }

// Error returns when the turn comes.
func (e *turnError) Error() string {
	return "the namespace has used up its budget for " + e.after.String()
}

// errUndecided means that the cache does not show yet whether an object was created or deleted.
var errUndecided = errors.New("the cache may be older than the last event of the source")

// reconcile publishes the event of a source, if there is one. If the namespace has used up its budget, it returns a turnError and records the
// reservation in the entry. A RejectError means that the event can never be published, and errUndecided that the entry is needed again.
func (r *reconciler) reconcile(ctx context.Context, source events.Source, entry *queueEntry) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for range maxConflicts {
		before := r.ledger.get(source)
		found := r.assessors[source.Kind].assess(source, before, *entry)
		if !found.publish {
			return r.leave(source, before, found, entry)
		}
		change := found.change
		change.Cluster, change.Source = r.cluster, source
		if change.Time.IsZero() {
			change.Time = r.now().UTC()
		}
		var expected uint64
		if before != nil {
			expected = before.Seq
		}
		if r.isLimited(before, change, entry.created) {
			if after := r.throttle.wait(ctx, change, &entry.held); after > 0 {
				return &turnError{after: after}
			}
		}
		err := r.publisher.publish(ctx, change, expected, entry.at)
		if !errors.Is(err, bus.ErrConflict) {
			return r.settle(source, found, entry, err)
		}
		// Another watcher of this cluster was faster, or the stream has lost the event. Compare with the event on the stream.
		if err := r.reader.refresh(ctx, source); err != nil {
			return err
		}
	}
	return fmt.Errorf("publishing %s: %w, %d times in a row", source, bus.ErrConflict, maxConflicts)
}

// leave ends the work on a source that has no event to publish, or none yet. A deletion may have to wait for the first list, unless the last event is
// that deletion, because a missing permission delays the first list without limit. The last event may be another watcher's, of which the cache does
// not know yet.
func (r *reconciler) leave(source events.Source, before *kinds.LastEvent, found assessment, entry *queueEntry) error {
	r.throttle.dropped(source.Namespace, &entry.held)
	r.cached.Settle(source, before)
	if exists(before) && entry.gone && !r.informers.hasListed(source.Kind) {
		return errUndecided
	}
	return decided(found, *entry)
}

// decided returns errUndecided if the source was created or deleted and the cache may be too old to show it, because no later notice will.
func decided(found assessment, entry queueEntry) error {
	if found.doubted && (entry.created || entry.gone) {
		return errUndecided
	}
	return nil
}

// settle frees the room that was held for an event that is published or can never be published, because every retry would be refused and sightings
// have limited room. An object is compared again when it changes. settle returns err, or errUndecided.
func (r *reconciler) settle(source events.Source, found assessment, entry *queueEntry, err error) error {
	_, refused := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
		r.throttle.published(&entry.held)
		r.sightings.done(source, found.seen)
		r.cached.Settle(source, r.ledger.get(source))
		if source.Kind == events.KindSecretProviderClass {
			r.pending.add(source) // The content of its pods is settled by the assessment after its event.
		}
		return decided(found, *entry)
	case refused:
		r.throttle.dropped(source.Namespace, &entry.held)
		if r.sightings.done(source, found.seen) {
			r.pending.add(source) // There may be another event to publish.
		}
	}
	return err
}

// isLimited reports whether an event counts towards the budget of its namespace. The first event of a source that existed before does not, because a
// change during its wait would go unnoticed. Neither do events that the stream has lost, and those of secrets in stores, which have no namespace.
// Nothing is limited until every source that existed at the start is on the stream, because each has at most one event by then. Created reports
// whether the object was created if the first event of its kind is always observed.
func (r *reconciler) isLimited(before *kinds.LastEvent, change events.Change, created bool) bool {
	switch {
	case change.Source.Namespace == "" || !r.readiness.complete.Load():
		return false
	case before == nil:
		return created || change.ChangedAt != ""
	}
	return !before.Lost
}

// objectAssessor assesses the sources of one kind, which are cached objects. It finds no event while the cached object may be older than the last
// event.
type objectAssessor struct {
	kind      kinds.Kind
	informers *informerSet
	ledger    *ledger
	absence   *absence
	view      kinds.View
}

func (a *objectAssessor) assess(source events.Source, before *kinds.LastEvent, entry queueEntry) assessment {
	kind, within := a.kind.Listing(), a.informers.scope
	version := a.informers.version(kind.Kind, source.Namespace)
	now := a.view.Cached.Lookup(source)
	if !within.lists(source.Namespace) || now != nil && !within.includes(source.Namespace) {
		return assessment{}
	}
	if kind.Part != nil && now != nil {
		version = a.informers.version(kind.Part.Listing().Kind, source.Namespace)
	}
	if a.ledger.isAhead(source, before, now, version, a.view.Now()) {
		a.view.Queue.AddAfter(source, doubtInterval)
		found := publishAgain(before)
		found.doubted = true
		return found
	}
	if kind.Part != nil && now == nil && !a.informers.hasListed(kind.Kind) {
		return publishAgain(before) // A part of a source may be listed before the source.
	}
	change, ok := a.kind.Assess(a.view, before, kinds.State{
		Now: now, First: entry.first, Created: entry.created, Changes: entry.changes,
		Recent: before == nil && now != nil && a.absence.isRecent(now),
	})
	// A missing object whose deletion was not seen may have lost its labels. It is left alone, like objects in namespaces that are not watched.
	if mayExist := now == nil && a.absence.scope.Selector != "" && !entry.gone; !ok || mayExist {
		return publishAgain(before)
	}
	return assessment{change: change, publish: true}
}
