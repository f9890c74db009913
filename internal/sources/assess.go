package sources

import "github.com/keyturn/keyturn/internal/events"

// assessor returns the event of a source, compared with the last event on its subject, which is nil if there is none. It returns false if there is
// nothing to say. If the stream has lost that last event, and nothing has happened since, it returns the event again. It does not set the cluster
// and the source, nor usually the time; the zero time means now. The event's Trace is that of its cause, if that is known.
//
// Each watched kind has one. The ledger is filled with the last events of these kinds.
type assessor func(source events.Source, before *lastEvent, created bool) (events.Change, bool)

// assessContent compares the content of an object with the last event. An object that was created shortly before it was first watched may be newer
// than the pods that read it.
func assessContent(v view, before *lastEvent, now *object, created bool) (events.Change, bool) {
	change, ok := compare(before, now, created)
	if ok && now != nil && !created && before == nil && v.isRecent(now) {
		change.Since, change.CreatedAt = now.created(), now.ResourceVersion
	}
	return change, ok
}

// assessObjects returns the assessor of a kind whose sources are cached objects. The assessor returns no event while the cached object may be older
// than the last event.
func assessObjects(kind sourceKind, within scope, v view) assessor {
	return func(source events.Source, before *lastEvent, created bool) (events.Change, bool) {
		version := v.version(kind.kind, source.Namespace)
		now := v.cached.lookup(source)
		if !within.lists(source.Namespace) || now != nil && !within.includes(source.Namespace) {
			v.doubted(source, nil, nil, version) // This ends a doubt, which would keep a source for which nothing is published.
			return events.Change{}, false
		}
		if kind.part != nil && now != nil {
			version = v.version(kind.part.kind, source.Namespace)
		}
		doubted := v.doubted(source, before, now, version)
		if change, ok := kind.assess(v, before, now, created); ok && !doubted {
			return change, true
		}
		return before.again()
	}
}
