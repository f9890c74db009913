package sources

import (
	"cmp"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// maxGone is how many removed keys an event remembers. An object whose keys have a date for a name would otherwise
// remember one more with each change, for ever.
const maxGone = 64

// compare says what an object means against the last event on its subject. It is a pure function.
//
//	stream says    object               event
//	nothing        there                observed; changed where it was created while the watcher ran
//	there          same content         none
//	there          other content        changed
//	there          gone                 deleted
//	gone           there, same content  observed: the stream must know it again, and it is no change
//	gone           there, other content changed
//	gone, nothing  gone                 none
//	there or gone  temporary            none: what the stream knows is followed by the real certificate
//
// What changed earlier is carried on in every event: see events.Key.
func compare(before *last, now *object, created bool) (events.Change, bool) {
	switch {
	case now == nil && (!before.tells() || before.verb == events.VerbDeleted):
		return events.Change{}, false
	case now == nil:
		return deleted(before), true
	case !before.tells():
		return appeared(now, created), true
	case now.about != nil && now.about.temporary:
		return events.Change{}, false
	}
	prints, comparable := now.under(before.keyID)
	if !comparable {
		// The key of the last event has left the key file. The same object at the same resourceVersion has the same content;
		// of any other nothing is known, and what is not known may have changed. All that is known are the names.
		if before.verb != events.VerbDeleted && before.uid == string(now.UID) && before.version == now.ResourceVersion {
			return events.Change{}, false
		}
		return differs(before, now, changed(before.fingerprints(), now.prints[0])), true
	}
	if prints.all != before.all {
		names := changed(before.fingerprints(), prints)
		if now.narrowed {
			// Keys that do not count any more were not removed.
			names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(certificateKeys, name) })
			if len(names) == 0 && before.verb != events.VerbDeleted {
				return events.Change{}, false
			}
		}
		return differs(before, now, names), true
	}
	if before.verb == events.VerbDeleted {
		again := describe(now, events.VerbObserved, before)
		again.Previous = before.all.text(before.keyID)
		return again, true
	}
	return events.Change{}, false
}

func appeared(now *object, created bool) events.Change {
	if !created {
		return describe(now, events.VerbObserved, nil)
	}
	change := describe(now, events.VerbChanged, nil)
	change.Created, change.CreatedAt, change.ChangedAt = true, change.ResourceVersion, change.ResourceVersion
	if !change.Truncated {
		change.Changed = changed(nil, now.prints[0])
	}
	return change
}

// differs makes the event of other content. The names are those of the keys that are not known to be as they were.
func differs(before *last, now *object, names []string) events.Change {
	change := describe(now, events.VerbChanged, before)
	change.Previous = before.all.text(before.keyID)
	change.Created = before.verb == events.VerbDeleted
	change.Changed = names
	mark(&change)
	return change
}

func deleted(before *last) events.Change {
	change := events.Change{
		Verb: events.VerbDeleted, UID: before.uid, ResourceVersion: before.version,
		Fingerprint: before.all.text(before.keyID), ChangedAt: before.changedAt, CreatedAt: before.createdAt, Truncated: before.truncated,
	}
	if !before.truncated {
		change.Keys = make(map[string]events.Key, len(before.keys))
	}
	for _, k := range before.keys {
		entry := events.Key{ChangedAt: k.changedAt}
		if !k.gone {
			entry.Fingerprint = k.sum.text(before.keyID)
		}
		change.Keys[k.name] = entry
	}
	return change
}

// describe makes an event of the object as it is, with what earlier events said of when its keys changed.
func describe(now *object, verb events.Verb, before *last) events.Change {
	current := now.prints[0]
	change := events.Change{
		Verb: verb, Source: now.source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: current.all.text(current.keyID),
		Ignore:      now.ignore, Match: now.match, WrittenAt: now.writtenAt,
	}
	var earlier []lastKey
	if before != nil {
		change.ChangedAt, change.CreatedAt, earlier = before.changedAt, before.createdAt, before.keys
	}
	if !listable(current.keys) {
		change.Truncated = true
		return change
	}
	change.Keys = make(map[string]events.Key, len(current.keys))
	for _, print := range current.keys {
		change.Keys[print.name] = events.Key{Fingerprint: print.sum.text(current.keyID)}
	}
	var gone []lastKey
	for _, k := range earlier {
		if entry, ok := change.Keys[k.name]; ok {
			entry.ChangedAt = k.changedAt
			change.Keys[k.name] = entry
		} else if k.gone {
			gone = append(gone, k)
		}
	}
	// Of equal age the order of names decides, so that two watchers say the same.
	slices.SortFunc(gone, func(a, b lastKey) int {
		return cmp.Or(-cmp.Compare(len(a.changedAt), len(b.changedAt)), -cmp.Compare(a.changedAt, b.changedAt), cmp.Compare(a.name, b.name))
	})
	for _, k := range gone[:min(len(gone), maxGone)] {
		change.Keys[k.name] = events.Key{ChangedAt: k.changedAt}
	}
	return change
}

// listable tells whether an event can hold a line for each key.
func listable(keys []keyPrint) bool {
	size := 0
	for _, print := range keys {
		size += len(print.name)
	}
	return len(keys) <= events.MaxKeys && size <= events.MaxKeyNames
}

// mark writes down at which resourceVersion the content and the keys in Changed did change.
func mark(change *events.Change) {
	change.ChangedAt = change.ResourceVersion
	if change.Truncated {
		change.Changed = nil
		return
	}
	for _, name := range change.Changed {
		entry := change.Keys[name]
		entry.ChangedAt = change.ResourceVersion
		change.Keys[name] = entry
	}
}
