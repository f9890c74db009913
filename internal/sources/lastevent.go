package sources

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// lastEvent is the last event on a source's subject.
type lastEvent struct{ events.LastChange }

// newLastEvent keeps what is needed of a change.
func newLastEvent(seq uint64, change events.Change) (*lastEvent, error) {
	last, err := events.NewLastChange(seq, time.Time{}, change)
	if err != nil {
		return nil, err
	}
	return &lastEvent{LastChange: last}, nil
}

// unreadableEvent is the last event of a source that could not be read. Only its sequence is known, which the next event has to supersede.
func unreadableEvent(seq uint64) *lastEvent {
	return &lastEvent{LastChange: events.LastChange{Seq: seq}}
}

// rare returns the fields that few events have.
func (l *lastEvent) rare() events.RareFields {
	if l == nil || l.Rare == nil {
		return events.RareFields{}
	}
	return *l.Rare
}

// recentSums returns the fingerprints of the latest contents of the source, the current one last.
func (l *lastEvent) recentSums() []sum {
	if recent := l.rare().Recent; len(recent) > 0 {
		return recent
	}
	return []sum{l.All}
}

// IsReadable reports whether there is an event and its content is known.
func (l *lastEvent) IsReadable() bool { return l != nil && l.Verb() != "" }

// isOf reports whether the event is about exactly this state of the object.
func (l *lastEvent) isOf(now *object) bool {
	return l.UID == string(now.UID) && l.ResourceVersion == now.ResourceVersion
}

// usedRequest returns the request that the source was last written for, as far as the stream knows.
func (l *lastEvent) usedRequest() string {
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

// statusRevision returns the revision of the last published status.
func (l *lastEvent) statusRevision() string {
	if status := l.rare().Status; status != nil {
		return status.Revision
	}
	return ""
}

// texts returns the fingerprints of the keys that existed, by name.
func (l *lastEvent) texts() map[string]string {
	texts := make(map[string]string, len(l.Keys))
	for _, k := range l.Keys {
		if !k.IsGone() {
			texts[k.Name] = k.Sum.Text(l.KeyID())
		}
	}
	return texts
}

// content returns an event with the same content and the times at which the keys changed.
func (l *lastEvent) content(verb events.Verb) events.Change {
	last := l.Change("", events.Source{})
	return events.Change{
		Verb: verb, UID: last.UID, ResourceVersion: last.ResourceVersion, Fingerprint: last.Fingerprint, Keys: last.Keys, Truncated: last.Truncated,
		ChangedAt: last.ChangedAt, CreatedAt: last.CreatedAt, Since: last.Since, Recent: last.Recent,
	}
}
