package kinds

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// assessContent compares the content of an object with the last event. An object that changed before its creation was published is compared with its
// first state: for workloads that may have read that, it was changed, not created. An object that was created shortly before it was first watched may
// be newer than the pods that read it.
func assessContent(before *LastEvent, o State) (events.Change, bool) {
	change, ok := compare(before, o.Now, o.Created)
	if o.Now != nil && o.Changes > 1 {
		forgetAdded(&change)
	}
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
			if o.Changes > 2 {
				forgetAdded(&changed)
			}
			return changed, true
		}
	}
	return change, true // At least the creation is published.
}

// forgetAdded removes the marks of added keys from the event: a key may have had other content before, with which pods started.
func forgetAdded(change *events.Change) {
	for name, key := range change.Keys {
		if key.ChangedAt == change.ResourceVersion {
			key.Added = false
			change.Keys[name] = key
		}
	}
}

// compare returns the event for an object, compared with the last event on its subject. It returns false if there is nothing to publish. It is a
// pure function.
//
//	last event     object               event
//	none           exists               observed; changed if it was created while the watcher ran, or after the one before
//	exists         same content         none; observed if another object of the name was created while the watcher ran
//	exists         same content         observed if it was put on hold, or the hold was taken off, or it is ignored now, or other keys count
//	exists         other content        changed
//	exists, gone   an earlier state     none: another watcher has seen more of the same object
//	exists         gone                 deleted
//	gone           same content         observed: the source exists again, but has not changed
//	gone           other content        changed
//	gone, none     gone                 none
//	exists, gone   temporary            none: wait for the real certificate
//
// Every event contains the time of the last change of each key: see events.Key.
func compare(before *LastEvent, now *Object, created bool) (events.Change, bool) {
	switch {
	case now == nil:
		return deleted(before)
	case !before.IsReadable():
		return appeared(now, created), true
	case before.isAheadOf(now):
		return events.Change{}, false
	case now.rare().temporary:
		return events.Change{}, false
	}
	now = now.since(before)
	current, comparable := under(now.fingerprints, before.KeyID())
	if !comparable {
		// The key of the last event was removed from the key file. The same object at the same resourceVersion has the same content. Any other object
		// may have changed, and only the names of its keys can be compared.
		if before.Verb() != events.VerbDeleted && before.isOf(now) {
			return events.Change{}, false
		}
		return differs(before, now, created, differencesOf(before.Change("", now.Source), now.fingerprints[0])), true
	}
	if current.all != before.All {
		return differs(before, now, created, differencesOf(before.Change("", now.Source), current)), true
	}
	// If the object was created meanwhile, it is another one, despite the same content. An object from a list does not show this: after a cluster is
	// rebuilt, all objects are other ones.
	isAnother := created && before.UID != string(now.UID) && events.CompareVersions(now.ResourceVersion, before.ResourceVersion) > 0
	if before.Verb() == events.VerbDeleted || isAnother {
		return reappeared(before, now, created), true
	}
	return holds(before, now)
}

// holds returns the event for a source with unchanged content whose hold, counting keys or ignoring has changed. Waiting changes of the source may
// depend on it, and no other event may report it. The end of ignoring is not reported: forgotten changes remain forgotten.
func holds(before *LastEvent, now *Object) (events.Change, bool) {
	isIgnored := now.ignore && !before.Ignore
	isSame := now.rare().hold == before.rare().Hold && !isIgnored && !now.countsOtherwise(before)
	if before.Verb() == events.VerbDeleted || isSame {
		return events.Change{}, false
	}
	return describe(now, events.VerbObserved, before), true
}

// isOfHold reports whether an event comes from holds: the source existed before, and its content has not changed.
func isOfHold(before *LastEvent, change events.Change) bool {
	return before.IsReadable() && change.Verb == events.VerbObserved && change.Previous == ""
}

// deleted returns the event for a deleted source. It returns false if the stream does not have the source, or has its deletion.
func deleted(before *LastEvent) (events.Change, bool) {
	if !before.IsReadable() || before.Verb() == events.VerbDeleted {
		return events.Change{}, false
	}
	return before.content(events.VerbDeleted), true
}

// isAheadOf reports whether the event shows a later state of the object.
func (l *LastEvent) isAheadOf(now *Object) bool {
	return l.UID == string(now.UID) && events.CompareVersions(l.ResourceVersion, now.ResourceVersion) > 0
}

func appeared(now *Object, created bool) events.Change {
	if !created {
		return describe(now, events.VerbObserved, nil)
	}
	change := describe(now, events.VerbChanged, nil)
	change.Created, change.CreatedAt, change.ChangedAt = true, change.ResourceVersion, change.ResourceVersion
	change.Changed = slices.Sorted(maps.Keys(change.Keys))
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

// markAppeared sets the resourceVersion at which a deleted source appeared again. Pods that started in between have none of its content.
func markAppeared(change *events.Change) {
	change.CreatedAt, change.Since = change.ResourceVersion, time.Time{}
}

// differs returns the event for changed content.
func differs(before *LastEvent, now *Object, created bool, found differences) events.Change {
	change := describe(now, events.VerbChanged, before)
	change.Previous = before.Fingerprint()
	change.Created = before.Verb() == events.VerbDeleted
	if created && change.Created {
		markAppeared(&change)
	}
	change.ChangedAt = change.ResourceVersion
	setWriters(&change, before, now)
	buckets, size := found.buckets, sizeOfNames(change.Keys)
	for _, name := range found.names {
		entry, isListed := change.Keys[name]
		switch {
		case isListed:
		case now.fingerprints[0].has(name), size+len(name) > events.MaxKeyNames:
			buckets = append(buckets, events.Bucket(name))
			continue
		default:
			size += len(name) // The key was removed.
		}
		entry.ChangedAt = change.ResourceVersion
		entry.Added = entry.Fingerprint != "" && before.hasNeverHad(name)
		change.Keys[name] = entry
		change.Changed = append(change.Changed, name)
	}
	if change.Buckets == nil && len(buckets) > 0 {
		change.Buckets = make(map[string]events.Key)
	}
	for _, name := range buckets {
		entry := change.Buckets[name]
		entry.ChangedAt = change.ResourceVersion
		change.Buckets[name] = entry
	}
	now.uncount(&change, before) // It needs the removed keys and the changes.
	return change
}

// describe returns an event for the object, with the times of key changes from the last event. Times later than the object's own are from a cluster
// that this one has replaced, and must not stay, because every later change would count as older.
func describe(now *Object, verb events.Verb, before *LastEvent) events.Change {
	current := now.fingerprints[0]
	change := events.Change{
		Verb: verb, Source: now.Source, UID: string(now.UID), ResourceVersion: now.ResourceVersion,
		Fingerprint: current.all.Text(current.keyID),
		Ignore:      now.ignore, Match: now.match, Hold: now.rare().hold, WrittenAt: now.written(),
		Problem: now.problem(),
	}
	if g := now.rare().generated; g != nil {
		change.Generated = g.event(before)
	}
	var earlier events.Change
	here := func(version string) bool { return events.CompareVersions(version, now.ResourceVersion) <= 0 }
	date := func(version string) string {
		if here(version) {
			return version
		}
		return ""
	}
	if before != nil {
		earlier = before.Change("", now.Source)
		change.Since, change.ChangedAt, change.CreatedAt = earlier.Since, date(earlier.ChangedAt), date(earlier.CreatedAt)
	}
	listed, rest := divide(earlier.Keys, current)
	change.Truncated, change.Buckets = len(rest) > 0, countRest(earlier, current.keyID, rest, date)
	change.Keys = make(map[string]events.Key, len(listed))
	for _, k := range listed {
		key, _ := earlier.Key(k.name)
		change.Keys[k.name] = events.Key{Fingerprint: k.sum.Text(current.keyID), ChangedAt: date(key.ChangedAt)}
	}
	var gone []events.LastKey
	for name, key := range earlier.Keys {
		if key.Fingerprint == "" && here(key.ChangedAt) && !current.has(name) {
			gone = append(gone, events.LastKey{Name: name, ChangedAt: key.ChangedAt})
		}
	}
	// Keys of equal age are sorted by name, so that two watchers publish the same event.
	slices.SortFunc(gone, func(a, b events.LastKey) int {
		return cmp.Or(events.CompareVersions(b.ChangedAt, a.ChangedAt), cmp.Compare(a.Name, b.Name))
	})
	for _, k := range gone[:min(len(gone), maxGone)] {
		change.Keys[k.Name] = events.Key{ChangedAt: k.ChangedAt}
	}
	for _, name := range before.rare().Added {
		if entry := change.Keys[name]; entry.Fingerprint != "" && entry.ChangedAt != "" {
			entry.Added = true
			change.Keys[name] = entry
		}
	}
	now.uncount(&change, before)
	return change
}
