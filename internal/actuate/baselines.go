package actuate

import (
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// baselines has, for each source that concerns a workload, the last event that was taken, to compare the next one with.
type baselines map[events.Source]baseline

// baseline is an event that was taken.
type baseline struct {
	change events.Change
	at     position
	// void says that the event does not show what the pods have.
	void bool
}

// isLate reports whether a later event of the source was taken.
func (b baselines) isLate(delivery *events.Delivery) bool {
	last, ok := b[delivery.Change.Source]
	return ok && positionOf(delivery).isBefore(last.at)
}

// next returns the event of the source before this one, or nil if it is not known, and keeps this one if relevant. A redelivered
// event says nothing about the content before it; a deletion or an ignored source says nothing about what the pods run.
func (b baselines) next(delivery *events.Delivery, relevant bool) *events.Change {
	change := delivery.Change
	before, ok := b[change.Source]
	if !relevant {
		delete(b, change.Source)
		return nil
	}
	change = detached(change)
	void := change.Ignore || change.Verb == events.VerbDeleted
	if void {
		change.Keys, change.Changed = nil, nil // Nothing is compared with it, and there may be one for each name that ever was.
	}
	at := positionOf(delivery)
	at.uid, at.version = change.UID, change.ResourceVersion
	b[change.Source] = baseline{change: change, at: at, void: void}
	if !ok || before.void || void || before.change.ID() == change.ID() {
		return nil
	}
	return &before.change
}

// detached returns a copy of the change that shares no memory with the event as read. There, the attributes are substrings of the whole header, so
// keeping one of them would keep a kilobyte for each source. Its kind and its verb are the strings in the tables of events.
func detached(change events.Change) events.Change {
	for _, own := range []*string{
		&change.Cluster, &change.Source.Namespace, &change.Source.Name, &change.UID, &change.ResourceVersion, &change.Fingerprint,
	} {
		*own = strings.Clone(*own)
	}
	change.Trace = events.TraceContext{} // Nothing is compared with it.
	return change
}

// forget keeps the next event of a source from being compared with content that a workload never got.
func (b baselines) forget(source events.Source) {
	if last, ok := b[source]; ok {
		last.void = true
		b[last.change.Source] = last // The key is not the argument: the map would keep that, and with it the event's header.
	}
}

// voidFor is how long a void event is kept, with which nothing is compared. An earlier event of the source comes within that time, if at all.
const voidFor = time.Hour

// prune drops the sources that no workload reads any more, and old void events: with a pattern, there may be one for every name that ever existed.
func (b baselines) prune(isRead func(events.Source) bool, now time.Time) {
	for source, last := range b {
		if !isRead(source) || last.void && now.Sub(last.at.storedAt) > voidFor {
			delete(b, source)
		}
	}
}
