package kinds

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// LastEvent is the last event on a source's subject.
type LastEvent struct{ events.LastChange }

// NewLastEvent returns the last event of a source after a change.
func NewLastEvent(seq uint64, change events.Change) (*LastEvent, error) {
	last, err := events.NewLastChange(seq, time.Time{}, change)
	if err != nil {
		return nil, err
	}
	return &LastEvent{LastChange: last}, nil
}

// UnreadableEvent is a last event that could not be read. Only its sequence is known, which the next event supersedes.
func UnreadableEvent(seq uint64) *LastEvent {
	return &LastEvent{LastChange: events.LastChange{Seq: seq}}
}

// rare returns the fields that few events have.
func (l *LastEvent) rare() events.RareFields {
	if l == nil || l.Rare == nil {
		return events.RareFields{}
	}
	return *l.Rare
}

// recentSums returns the fingerprints of the latest contents of the source, the current one last.
func (l *LastEvent) recentSums() []sum {
	if recent := l.rare().Recent; len(recent) > 0 {
		return recent
	}
	return []sum{l.All}
}

// IsReadable reports whether there is an event and it could be read.
func (l *LastEvent) IsReadable() bool { return l != nil && l.Verb() != "" }

// isOf reports whether the event shows exactly this state of the object.
func (l *LastEvent) isOf(now *Object) bool {
	return l.UID == string(now.UID) && l.ResourceVersion == now.ResourceVersion
}

// usedRequest returns the request for which the source was last written, according to the stream.
func (l *LastEvent) usedRequest() string {
	cause := l.rare().Cause
	if cause == nil {
		return ""
	}
	// A failed sync may be retried for the same request.
	if cause.Event != "" && l.Verb() != events.VerbFailed {
		return cause.Event
	}
	return cause.Earlier
}

// hasNeverHad reports whether the source never had a key, according to the event. The event forgets removed keys, and their buckets, only if there
// are many.
func (l *LastEvent) hasNeverHad(name string) bool {
	has := func(list []events.LastKey, name string) bool {
		return slices.ContainsFunc(list, func(k events.LastKey) bool { return k.Name == name })
	}
	return !l.Truncated && !has(l.Keys, name) && !has(l.rare().Buckets, events.Bucket(name))
}

// isGone reports whether the event lists the key as removed.
func (l *LastEvent) isGone(name string) bool {
	return slices.ContainsFunc(l.Keys, func(k events.LastKey) bool { return k.Name == name && k.IsGone() })
}

// content returns an event with the same content, and the times at which the keys changed.
func (l *LastEvent) content(verb events.Verb) events.Change {
	last := l.Change("", events.Source{})
	return events.Change{
		Verb: verb, UID: last.UID, ResourceVersion: last.ResourceVersion, Fingerprint: last.Fingerprint, Keys: last.Keys, Truncated: last.Truncated,
		Buckets: last.Buckets, ChangedAt: last.ChangedAt, CreatedAt: last.CreatedAt, Since: last.Since, Recent: last.Recent,
		Ignore: last.Ignore, Match: last.Match, Generated: last.Generated,
	}
}
