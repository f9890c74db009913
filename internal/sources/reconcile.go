package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// publishTimeout bounds one attempt to publish. Attempts are repeated until one succeeds or the event is refused.
const publishTimeout = 10 * time.Second

// maxConflicts is how many times in a row another watcher may publish first before the source waits for a retry.
const maxConflicts = 5

// reconciler brings the last event of a source in line with the source.
type reconciler struct {
	cluster string
	now     func() time.Time
	// selector selects objects by their labels. If it is set, an object that is not cached may still exist without the labels.
	selector  string
	assessors map[events.Kind]assessor
	ledger    *ledger
	reader    *ledgerReader
	publisher *publisher
	throttle  *throttle
	sightings *sightings
	notice    func(source events.Source)
	// doubted reports whether the cached object of a source may be older than its last event, and hasListed whether the first list of a kind has
	// been handled.
	doubted   func(source events.Source) bool
	hasListed func(kind events.Kind) bool
	// settled reports whether everything that existed at the start is on the stream. Until then nothing is limited, because each source has at most
	// one event.
	settled func() bool
}

// turnError means that a source has an event to publish, but its turn comes later.
type turnError struct{ after time.Duration }

// Error returns when the turn comes.
func (e *turnError) Error() string {
	return "the namespace has used up its budget for " + e.after.String()
}

// errUndecided means that the cache does not show yet what became of an object that was created or deleted.
var errUndecided = errors.New("the cache may be older than the last event of the source")

// reconcile publishes the event of a source, if there is one. It returns a turnError if the namespace has used up its budget, and records the
// reservation in the entry. A RejectError means that the event can never be published, and errUndecided that the entry is needed again.
func (r *reconciler) reconcile(ctx context.Context, source events.Source, entry *queueEntry) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for range maxConflicts {
		before, seen := r.ledger.get(source), r.sightings.get(source)
		change, ok := r.assess(source, before, *entry)
		if !ok {
			return r.leave(source, before, entry)
		}
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
		if !errors.Is(err, events.ErrConflict) {
			return r.settle(source, seen, entry, err)
		}
		// Another watcher of this cluster was faster, or the stream has lost the event. Compare with what the stream has.
		if err := r.reader.refresh(ctx, source); err != nil {
			return err
		}
	}
	return fmt.Errorf("publishing %s: %w, %d times in a row", source, events.ErrConflict, maxConflicts)
}

// leave ends the work on a source that has no event to publish, or none yet. A deletion may have to wait for the first list, but only if the last
// event does not have it: the first list does not end while a permission is missing.
func (r *reconciler) leave(source events.Source, before *lastEvent, entry *queueEntry) error {
	r.throttle.dropped(source.Namespace, &entry.held)
	exists := before.isReadable() && before.Verb() != events.VerbDeleted
	if exists && entry.gone && !r.hasListed(source.Kind) {
		return errUndecided
	}
	return r.decided(source, *entry)
}

// decided returns errUndecided if the source was created or deleted, and the cache may be too old to show that. Later nothing else tells it.
func (r *reconciler) decided(source events.Source, entry queueEntry) error {
	if (entry.created || entry.gone) && r.doubted(source) {
		return errUndecided
	}
	return nil
}

// settle frees what was held for an event that is published or can never be published: every retry would be refused, and sightings have limited
// room. An object is compared again when it changes. settle returns the error, or errUndecided.
func (r *reconciler) settle(source events.Source, seen *openbao.Observation, entry *queueEntry, err error) error {
	_, refused := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
		r.throttle.published(&entry.held)
		return r.decided(source, *entry)
	case refused:
		r.throttle.dropped(source.Namespace, &entry.held)
		if r.sightings.done(source, seen) {
			r.notice(source) // There may be another event to publish.
		}
	}
	return err
}

// isLimited reports whether an event counts towards the budget of its namespace. The first event of a source that existed before does not, because
// a change while it waits would go unnoticed. Neither does an event that the stream has lost, nor that of a secret in a store, which is in no
// namespace. created is needed because the event does not tell whether the object was created if the first event of its kind is always observed.
func (r *reconciler) isLimited(before *lastEvent, change events.Change, created bool) bool {
	switch {
	case change.Source.Namespace == "" || !r.settled():
		return false
	case before == nil:
		return created || change.ChangedAt != ""
	}
	return !before.Lost
}

// assess compares a source with its last event. An object that was created and then changed before anything was published is compared with its
// first state: for workloads that may already have read that, it was changed and not created.
func (r *reconciler) assess(source events.Source, before *lastEvent, entry queueEntry) (events.Change, bool) {
	assess := r.assessors[source.Kind]
	change, ok := assess(source, before, entry.created)
	if ok && r.mayBeUnselected(source, before, change, entry) {
		return before.again()
	}
	if !ok || before != nil || !change.Created || entry.first == nil || entry.first.source != source || change.UID != string(entry.first.UID) {
		return change, ok
	}
	created := appeared(entry.first, true)
	if created.Fingerprint == change.Fingerprint {
		return change, true
	}
	first, err := newLastEvent(0, created)
	if err != nil {
		return change, true // At least the creation is published.
	}
	if changed, ok := assess(source, first, true); ok {
		return changed, true
	}
	return change, true
}

// mayBeUnselected reports whether the source of a deletion may still exist without the labels of the selector, because its removal was not seen.
// Such a source is left alone, like the sources of a namespace that is no longer watched.
func (r *reconciler) mayBeUnselected(source events.Source, before *lastEvent, change events.Change, entry queueEntry) bool {
	isDeletion := change.Verb == events.VerbDeleted && before.Verb() != events.VerbDeleted
	return isDeletion && r.selector != "" && source.Kind != events.KindOpenBao && !entry.gone
}
