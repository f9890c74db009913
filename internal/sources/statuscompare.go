package sources

import "github.com/keyturn/keyturn/internal/events"

// compareStatus returns the event for the status of an object, compared with the last event on its subject. It returns false if there is nothing to
// publish. Like compare, it is a pure function, and it handles deleted and recreated objects in the same way.
func compareStatus(before *lastEvent, now *object, current status, content []fingerprints) (events.Change, bool) {
	switch {
	case now == nil && (!before.isReadable() || before.Verb() == events.VerbDeleted):
		return events.Change{}, false
	case now == nil:
		return before.content(events.VerbDeleted), true
	case !before.isReadable():
		return describeStatus(now, current, events.VerbObserved, nil, content[0]), true
	case before.isAheadOf(now):
		return events.Change{}, false
	}
	comparable, found := under(content, before.KeyID())
	same := found && comparable.all == before.All ||
		// Without the key of the last event nothing can be compared, but an object that was not written since has the same status.
		!found && before.isOf(now)
	switch {
	case before.Verb() == events.VerbDeleted && (same || current.verb == ""):
		return describeStatus(now, current, events.VerbObserved, before, content[0]), true
	case same, current.verb == "":
		return events.Change{}, false
	case current.verb == events.VerbIssued && current.fields.Revision == before.statusRevision():
		// The failure was cleared without a new certificate.
		return describeStatus(now, current, events.VerbObserved, before, content[0]), true
	}
	return describeStatus(now, current, current.verb, before, content[0]), true
}

func describeStatus(now *object, current status, verb events.Verb, before *lastEvent, content fingerprints) events.Change {
	change := events.Change{
		Verb: verb, Source: now.source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: content.all.Text(content.keyID), Status: &current.fields,
	}
	if before != nil {
		change.ChangedAt, change.Previous = before.ChangedAt, before.Fingerprint()
	}
	if verb != events.VerbObserved {
		change.ChangedAt = now.ResourceVersion
	}
	return change
}

// assessStatus compares the status of an object, as refined by refine, with the last event.
func assessStatus(v view, before *lastEvent, now *object, refine func(status) status) (events.Change, bool) {
	switch {
	case now == nil:
		return compareStatus(before, nil, status{}, nil)
	case now.details.status == nil:
		v.unreadable(now.source)
		return events.Change{}, false
	}
	current := refine(*now.details.status)
	return compareStatus(before, now, current, v.ring.fingerprint(now.source, current.content()))
}
