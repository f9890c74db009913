package kinds

import (
	"cmp"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// maxGone is the number of removed keys that an event lists. Without a limit, an object whose key names are dates would list one more with each
// change.
const maxGone = 64

// assessContent compares the content of an object with the last event. An object that was created and then changed before anything was published is
// compared with its first state: for workloads that may already have read that, it was changed and not created. An object that was created shortly
// before it was first watched may be newer than the pods that read it.
func assessContent(before *LastEvent, o State) (events.Change, bool) {
	change, ok := compare(before, o.Now, o.Created)
	if !ok || o.Now == nil || before != nil {
		return change, ok
	}
	if o.Recent && !o.Created {
		change.Since, change.CreatedAt = o.Now.Created(), o.Now.ResourceVersion
	}
	if !change.Created || o.First == nil || o.First.UID != o.Now.UID {
		return change, true
	}
	created := appeared(o.First, true)
	if created.Fingerprint == change.Fingerprint {
		return change, true
	}
	if first, err := NewLastEvent(0, created); err == nil {
		if changed, ok := compare(first, o.Now, true); ok {
			return changed, true
		}
	}
	return change, true // At least the creation is published.
}

// compare returns the event for an object, compared with the last event on its subject. It returns false if there is nothing to publish. It is a
// pure function.
//
//	last event     object               event
//	none           exists               observed; changed if it was created while the watcher ran, or after the one before
//	exists         same content         none; observed if another object of the name was created while the watcher ran
//	exists         same content         observed if it was put on hold, or the hold was taken off, or it is ignored now
//	exists         other content        changed
//	exists, gone   an earlier state     none: another watcher has seen more of the same object
//	exists         gone                 deleted
//	gone           same content         observed: the source exists again, but has not changed
//	gone           other content        changed
//	gone, none     gone                 none
//	exists, gone   temporary            none: wait for the real certificate
//
// Every event repeats when each key last changed: see events.Key.
func compare(before *LastEvent, now *Object, created bool) (events.Change, bool) {
	switch {
	case now == nil:
		return deleted(before)
	case !before.IsReadable():
		return appeared(now, created), true
	case before.isAheadOf(now):
		return events.Change{}, false
	case now.details != nil && now.details.temporary:
		return events.Change{}, false
	}
	current, comparable := under(now.fingerprints, before.KeyID())
	if !comparable {
		// The key of the last event was removed from the key file. The same object at the same resourceVersion has the same
		// content. Any other may have changed, and only the names of its keys can be compared.
		if before.Verb() != events.VerbDeleted && before.isOf(now) {
			return events.Change{}, false
		}
		return differs(before, now, created, changedKeys(before.texts(), now.fingerprints[0])), true
	}
	if current.all != before.All {
		earlier := before.texts()
		names := changedKeys(earlier, current)
		if now.derived && !current.truncated {
			names = withoutGenerated(names, earlier)
			if before.Verb() != events.VerbDeleted && len(names) == 0 {
				return holds(before, now)
			}
		}
		return differs(before, now, created, names), true
	}
	// An object with the same content that was created meanwhile is a different one. That cannot be concluded for an object found in a list: after
	// a cluster is rebuilt, all of its objects are different ones.
	isAnother := created && before.UID != string(now.UID) && events.CompareVersions(now.ResourceVersion, before.ResourceVersion) > 0
	if before.Verb() == events.VerbDeleted || isAnother {
		return reappeared(before, now, created), true
	}
	return holds(before, now)
}

// holds returns the event for a source whose content has not changed but whose hold has, or that is ignored now. Changes of the source may wait,
// for the hold or for something else, and there may be no other event that reports it. That it is not ignored any more is not reported: changes
// that were forgotten stay so.
func holds(before *LastEvent, now *Object) (events.Change, bool) {
	isIgnored := now.ignore && !before.Ignore
	if before.Verb() == events.VerbDeleted || now.hold() == before.rare().Hold && !isIgnored {
		return events.Change{}, false
	}
	return describe(now, events.VerbObserved, before), true
}

// isOfHold reports whether an event only reports a new hold, or that the source is ignored now: the source existed before, and its content has not
// changed.
func isOfHold(before *LastEvent, change events.Change) bool {
	return before.IsReadable() && change.Verb == events.VerbObserved && change.Previous == ""
}

// deleted returns the event for a source that is gone. It returns false if the stream does not have the source, or has its deletion.
func deleted(before *LastEvent) (events.Change, bool) {
	if !before.IsReadable() || before.Verb() == events.VerbDeleted {
		return events.Change{}, false
	}
	return before.content(events.VerbDeleted), true
}

// isAheadOf reports whether the event is about a later state of the object.
func (l *LastEvent) isAheadOf(now *Object) bool {
	return l.UID == string(now.UID) && events.CompareVersions(l.ResourceVersion, now.ResourceVersion) > 0
}

func appeared(now *Object, created bool) events.Change {
	if !created {
		return describe(now, events.VerbObserved, nil)
	}
	change := describe(now, events.VerbChanged, nil)
	change.Created, change.CreatedAt, change.ChangedAt = true, change.ResourceVersion, change.ResourceVersion
	if !change.Truncated {
		change.Changed = changedKeys(nil, now.fingerprints[0])
	}
	return change
}

// reappeared returns the event for a source that exists again with the content of the last event.
func reappeared(before *LastEvent, now *Object, created bool) events.Change {
	change := describe(now, events.VerbObserved, before)
	change.Previous = before.Fingerprint()
	if created && before.Verb() == events.VerbDeleted {
		markAppeared(&change)
	}
	return change
}

// markAppeared sets the resourceVersion at which a source appeared that was gone. Pods that started in between do not have it, not even the content
// that has not changed.
func markAppeared(change *events.Change) {
	change.CreatedAt, change.Since = change.ResourceVersion, time.Time{}
}

// differs returns the event for changed content. The names are the keys that may have changed.
func differs(before *LastEvent, now *Object, created bool, names []string) events.Change {
	change := describe(now, events.VerbChanged, before)
	change.Previous = before.Fingerprint()
	change.Created = before.Verb() == events.VerbDeleted
	if created && change.Created {
		markAppeared(&change)
	}
	change.ChangedAt = change.ResourceVersion
	if change.Truncated {
		return change
	}
	change.Changed = names
	for _, name := range names {
		entry := change.Keys[name]
		entry.ChangedAt = change.ResourceVersion
		change.Keys[name] = entry
	}
	return change
}

// describe returns an event for the object, with the times at which its keys changed from the last event. A time later than the object's own is
// from a cluster that this one has replaced: everything that is later compared with it would count as older forever.
func describe(now *Object, verb events.Verb, before *LastEvent) events.Change {
	current := now.fingerprints[0]
	change := events.Change{
		Verb: verb, Source: now.Source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: current.all.Text(current.keyID),
		Ignore:      now.ignore, Match: now.match, Hold: now.hold(), WrittenAt: now.written(),
	}
	var earlier []events.LastKey
	here := func(version string) bool { return events.CompareVersions(version, now.ResourceVersion) <= 0 }
	if before != nil {
		change.Since, earlier = before.rare().Since, before.Keys
		if here(before.ChangedAt) {
			change.ChangedAt = before.ChangedAt
		}
		if here(before.CreatedAt) {
			change.CreatedAt = before.CreatedAt
		}
	}
	if current.truncated {
		change.Truncated = true
		return change
	}
	change.Keys = make(map[string]events.Key, len(current.keys))
	for _, k := range current.keys {
		change.Keys[k.name] = events.Key{Fingerprint: k.sum.Text(current.keyID)}
	}
	var gone []events.LastKey
	for _, k := range earlier {
		if !here(k.ChangedAt) {
			continue
		}
		if entry, ok := change.Keys[k.Name]; ok {
			entry.ChangedAt = k.ChangedAt
			change.Keys[k.Name] = entry
		} else if k.IsGone() {
			gone = append(gone, k)
		}
	}
	// Keys of equal age are sorted by name, so that two watchers publish the same event.
	slices.SortFunc(gone, func(a, b events.LastKey) int {
		return cmp.Or(events.CompareVersions(b.ChangedAt, a.ChangedAt), cmp.Compare(a.Name, b.Name))
	})
	for _, k := range gone[:min(len(gone), maxGone)] {
		change.Keys[k.Name] = events.Key{ChangedAt: k.ChangedAt}
	}
	return change
}

// listable reports whether an event can list every key.
func listable(keys []keyFingerprint) bool {
	size := 0
	for _, k := range keys {
		size += len(k.name)
	}
	return len(keys) <= events.MaxKeys && size <= events.MaxKeyNames
}
