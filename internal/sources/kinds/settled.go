package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// cachedObject is a cached object: all of it, or the event that shows its content with the rest.
type cachedObject interface {
	// object returns the object of a source.
	object(of events.Source) *Object
}

func (o *Object) object(events.Source) *Object { return o }

// settled is an object whose UID and content an event shows, as the last event of a source usually does. It takes a third of the object's memory.
// The event never changes, and stays in memory with the object even if the source has a later one.
type settled struct {
	shown           *LastEvent
	resourceVersion string
	fingerprints    []fingerprints // those that the event does not have, because the ring has more keys than one
	at              int            // the index of those that it has
	extras
}

// settle returns the form in which to keep an object beside the last event of its source, which is nil if there is none.
func settle(now *Object, last *LastEvent) cachedObject {
	if last == nil || last.UID != string(now.UID) {
		return now
	}
	shown := last.fingerprints()
	at := slices.IndexFunc(now.fingerprints, func(f fingerprints) bool {
		return f.keyID == shown.keyID && f.all == shown.all && slices.Equal(f.keys, shown.keys)
	})
	if at < 0 {
		return now
	}
	s := &settled{shown: last, resourceVersion: now.ResourceVersion, at: at, extras: now.extras}
	if s.resourceVersion == last.ResourceVersion {
		s.resourceVersion = last.ResourceVersion // Both share the text.
	}
	if len(now.fingerprints) > 1 {
		s.fingerprints = slices.Delete(slices.Clone(now.fingerprints), at, at+1)
	}
	return s
}

func (s *settled) object(of events.Source) *Object {
	return &Object{
		Source: of, UID: types.UID(s.shown.UID), ResourceVersion: s.resourceVersion,
		fingerprints: slices.Insert(slices.Clone(s.fingerprints), s.at, s.shown.fingerprints()), extras: s.extras,
	}
}

// fingerprints returns the fingerprints of the source's content as far as the event lists its keys.
func (l *LastEvent) fingerprints() fingerprints {
	listed := fingerprints{keyID: l.KeyID(), all: l.All, keys: make([]keyFingerprint, 0, len(l.Keys))}
	for _, k := range l.Keys {
		if !k.IsGone() {
			listed.keys = append(listed.keys, keyFingerprint{name: k.Name, sum: k.Sum})
		}
	}
	return listed
}
