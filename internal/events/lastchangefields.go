package events

import (
	"slices"
	"time"
	"unique"
)

// otherFingerprint is the previous fingerprint of a change that was kept as a LastChange, if it was not the same.
const otherFingerprint = "other"

// Verb returns what happened, or "" if the event could not be read.
func (c *LastChange) Verb() Verb { return changeVerbs[c.verb] }

// KeyID names the key under which the fingerprints are made.
func (c *LastChange) KeyID() string {
	if c.keyID == (unique.Handle[string]{}) {
		return ""
	}
	return c.keyID.Value()
}

// Fingerprint returns that of all keys, as a text.
func (c *LastChange) Fingerprint() string { return c.All.Text(c.KeyID()) }

// Time returns when the watcher saw the change.
func (c *LastChange) Time() time.Time { return timeAt(c.seenAt) }

// WrittenAt returns the time of the newest write to the object. It is zero if that is unknown.
func (c *LastChange) WrittenAt() time.Time { return timeAt(c.writtenAt) }

// StoredAt returns when the stream stored the event. It is zero if that is unknown.
func (c *LastChange) StoredAt() time.Time { return timeAt(c.storedAt) }

// Trace returns the context of the span that created the event.
func (c *LastChange) Trace() TraceContext {
	t := TraceContext{Parent: c.trace.text()}
	if c.Rare != nil {
		t.State = c.Rare.TraceState
	}
	return t
}

// Change returns the change of a source. Its Previous tells only whether there was a fingerprint before, and whether that was the same.
func (c *LastChange) Change(cluster string, source Source) Change {
	change := Change{
		Cluster: cluster, Source: source, Verb: c.Verb(), UID: c.UID, ResourceVersion: c.ResourceVersion, Fingerprint: c.Fingerprint(),
		Time: c.Time(), Trace: c.Trace(), Truncated: c.Truncated, Changed: c.changed(), ChangedAt: c.ChangedAt,
		CreatedAt: c.CreatedAt, Created: c.Created, Ignore: c.Ignore, Match: c.Match, WrittenAt: c.WrittenAt(),
	}
	switch {
	case c.previousIsSame:
		change.Previous = change.Fingerprint
	case c.hasPrevious:
		change.Previous = otherFingerprint
	}
	if !c.Truncated {
		change.Keys = make(map[string]Key, len(c.Keys))
	}
	for _, k := range c.Keys {
		entry := Key{ChangedAt: k.ChangedAt}
		if !k.IsGone() {
			entry.Fingerprint = k.Sum.Text(c.KeyID())
		}
		change.Keys[k.Name] = entry
	}
	if rare := c.Rare; rare != nil {
		change.Since, change.Hold, change.Cause, change.Status, change.Store = rare.Since, rare.Hold, rare.Cause, rare.Status, rare.Store
		for _, sum := range rare.Recent {
			change.Recent = append(change.Recent, sum.Text(c.KeyID()))
		}
	}
	return change
}

// changed returns Changed of the change: the keys that changed last, if the event says that something did. A creation changes all of them.
func (c *LastChange) changed() []string {
	if verb := c.Verb(); verb == VerbObserved || verb == VerbDeleted || c.ChangedAt == "" {
		return nil
	}
	var names []string
	for _, k := range c.Keys {
		if k.ChangedAt == c.ChangedAt || c.CreatedAt == c.ChangedAt && !k.IsGone() {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}
