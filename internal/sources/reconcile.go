package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// publishTimeout bounds one try to publish. A try is repeated until it succeeds, or the event is refused.
const publishTimeout = 10 * time.Second

// maxConflicts is how often in a row another watcher may be faster before the source waits for a retry.
const maxConflicts = 5

// reconciler brings the last event of a source in line with the source.
type reconciler struct {
	cluster string
	now     func() time.Time
	// selector selects objects by their labels. With one, an object that is not cached may be there without them.
	selector  string
	assessors map[events.Kind]assessor
	ledger    *ledger
	reader    *ledgerReader
	publisher *publisher
	throttle  *throttle
	sightings *sightings
	notice    func(source events.Source)
	// settled reports whether everything that was there in the beginning is on the stream. It is not limited until then: there is an event for each
	// source at most.
	settled func() bool
}

// turnError says that a source has something to say, and that its turn comes later.
type turnError struct{ after time.Duration }

// Error returns when the turn comes.
func (e *turnError) Error() string {
	return "the namespace has used up its budget for " + e.after.String()
}

// reconcile publishes the event of a source, if there is something to say. It returns a turnError if its namespace has used up its budget. What it
// has reserved then is in the entry. A RejectError means that the event can never be published.
func (r *reconciler) reconcile(ctx context.Context, source events.Source, entry *queueEntry) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for range maxConflicts {
		before, seen := r.ledger.get(source), r.sightings.get(source)
		change, ok := r.assess(source, before, *entry)
		if !ok {
			r.throttle.dropped(source.Namespace, &entry.held)
			return nil
		}
		change.Cluster, change.Source = r.cluster, source
		if change.Time.IsZero() {
			change.Time = r.now().UTC()
		}
		var expected uint64
		if before != nil {
			expected = before.seq
		}
		if r.isLimited(before, change, entry.created) {
			if after := r.throttle.wait(ctx, change, &entry.held); after > 0 {
				return &turnError{after: after}
			}
		}
		err := r.publisher.publish(ctx, change, expected, entry.at)
		if !errors.Is(err, events.ErrConflict) {
			r.settle(source, seen, entry, err)
			return err
		}
		// Another watcher of this cluster was faster, or the stream has lost the event. Compare with what it has.
		if err := r.reader.refresh(ctx, source); err != nil {
			return err
		}
	}
	return fmt.Errorf("publishing %s: %w, %d times in a row", source, events.ErrConflict, maxConflicts)
}

// settle frees what was held for an event that is published, or that can never be: the same would be refused at each of its tries, and the places of
// sightings are few. An object is compared again when it changes.
func (r *reconciler) settle(source events.Source, seen *openbao.Observation, entry *queueEntry, err error) {
	_, refused := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
		r.throttle.published(&entry.held)
	case refused:
		r.throttle.dropped(source.Namespace, &entry.held)
		if r.sightings.done(source, seen) {
			r.notice(source) // There may be something else to say of it.
		}
	}
}

// isLimited reports whether an event counts towards the budget of its namespace. The first event of a source that was there before does not,
// because a change while it waits would go unnoticed; nor does one that the stream has lost. A secret in a store is in no namespace. That an object
// was created is not in the event of a kind whose first event is always observed.
func (r *reconciler) isLimited(before *lastEvent, change events.Change, created bool) bool {
	switch {
	case change.Source.Namespace == "" || !r.settled():
		return false
	case before == nil:
		return created || change.ChangedAt != ""
	}
	return !before.lost
}

// assess compares a source with its last event. An object that was changed since it was created, before anything was published, is compared
// with what it was: to those who may have read that already, it was changed and not created.
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
		return change, true // That it was created is published at least.
	}
	if changed, ok := assess(source, first, true); ok {
		return changed, true
	}
	return change, true
}

// mayBeUnselected reports whether the source of a deletion may be there without the labels by which objects are selected: it was not seen to go.
// It is left alone, like what is in a namespace that is not watched any more.
func (r *reconciler) mayBeUnselected(source events.Source, before *lastEvent, change events.Change, entry queueEntry) bool {
	isDeletion := change.Verb == events.VerbDeleted && before.verb != events.VerbDeleted
	return isDeletion && r.selector != "" && source.Kind != events.KindOpenBao && !entry.gone
}
