package sources

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
)

// lastEvent is the compact form of the last event on a source's subject.
type lastEvent struct {
	seq uint64
	// verb is empty if the last event of the source could not be read. Then only the sequence is known.
	verb      events.Verb
	uid       string
	version   string
	keyID     string
	all       sum
	changedAt string
	createdAt string
	// writtenAt is in seconds since 1970, as precise as the API server's times. Zero if unknown.
	writtenAt uint32
	truncated bool
	ignore    bool
	match     bool
	// lost means that the stream no longer has this event, so that it must be published again. Then seq is the sequence of the older event that the
	// stream has, or zero if it has none.
	lost bool
	keys []lastKey
	// rare is nil for most sources, but not for a secret in a store.
	rare *rareFields
}

// rareFields holds rarely set fields, behind a pointer to keep lastEvent small.
type rareFields struct {
	// deletedAt is when the watcher saw the deletion. It is set for a tombstone only.
	deletedAt time.Time
	// since and hold are the fields of events.Change.
	since  time.Time
	hold   string
	cause  *events.Cause
	status *events.Status
	// inStore and store are set for a secret in a store only.
	inStore *events.StoreState
	store   *storeState
	// recent is set for a SecretProviderClass only.
	recent *recentSums
}

// recentSums has the fingerprints of the latest contents of a SecretProviderClass, the current one last, under the key of the event.
type recentSums struct{ sums []sum }

// lastKey is one data key. A removed key is kept with gone set, so that later events still report the removal.
type lastKey struct {
	name      string
	sum       sum
	gone      bool
	changedAt string
}

// newLastEvent copies what it keeps of the change. The attributes of an event that was read share one string, the whole header, so that keeping one
// of them would keep the whole header in memory. Strings that many sources share are interned.
func newLastEvent(seq uint64, change events.Change) (*lastEvent, error) {
	keyID, all, err := parseSum(change.Fingerprint)
	if err != nil {
		return nil, err
	}
	l := &lastEvent{
		seq: seq, verb: change.Verb, uid: strings.Clone(change.UID), version: strings.Clone(change.ResourceVersion),
		keyID: unique.Make(keyID).Value(), all: all, changedAt: change.ChangedAt, createdAt: change.CreatedAt,
		writtenAt: seconds(change.WrittenAt), truncated: change.Truncated, ignore: change.Ignore, match: change.Match,
		keys: make([]lastKey, 0, len(change.Keys)),
	}
	rare := newRareFields(change)
	if len(change.Recent) > 0 {
		if rare.recent, err = newRecentSums(change.Recent, keyID); err != nil {
			return nil, err
		}
	}
	if rare != (rareFields{}) {
		l.rare = &rare
	}
	if change.Truncated {
		return l, nil
	}
	for name, k := range change.Keys {
		entry := lastKey{name: name, gone: k.Fingerprint == "", changedAt: k.ChangedAt}
		if !entry.gone {
			var id string
			if id, entry.sum, err = parseSum(k.Fingerprint); err != nil {
				return nil, err
			}
			if id != keyID {
				return nil, fmt.Errorf("fingerprint %q is not under the key of %q", k.Fingerprint, change.Fingerprint)
			}
		}
		l.keys = append(l.keys, entry)
	}
	return l, nil
}

func newRareFields(change events.Change) rareFields {
	rare := rareFields{cause: change.Cause, status: change.Status, since: change.Since, hold: change.Hold}
	if change.Verb == events.VerbDeleted {
		rare.deletedAt = change.Time
	}
	if change.Store != nil {
		rare.inStore, rare.store = internStore(*change.Store), newStoreState(change)
	}
	return rare
}

func newRecentSums(texts []string, keyID string) (*recentSums, error) {
	recent := &recentSums{sums: make([]sum, 0, len(texts))}
	for _, text := range texts {
		id, one, err := parseSum(text)
		switch {
		case err != nil:
			return nil, err
		case id != keyID:
			return nil, fmt.Errorf("fingerprint %q is not under the key of the event, %q", text, keyID)
		}
		recent.sums = append(recent.sums, one)
	}
	return recent, nil
}

// recentSums returns the fingerprints of the latest contents of the source, the current one last.
func (l *lastEvent) recentSums() []sum {
	if l.rare == nil || l.rare.recent == nil {
		return []sum{l.all}
	}
	return l.rare.recent.sums
}

// seconds returns the seconds since 1970, or zero for the zero time.
func seconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), math.MaxUint32)) }

// timeOf is the inverse of seconds.
func timeOf(seconds uint32) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// isReadable reports whether there is an event and its content is known.
func (l *lastEvent) isReadable() bool { return l != nil && l.verb != "" }

// isOf reports whether the event is about exactly this state of the object.
func (l *lastEvent) isOf(now *object) bool {
	return l.uid == string(now.UID) && l.version == now.ResourceVersion
}

// usedRequest returns the request that the source was last written for, as far as the stream knows.
func (l *lastEvent) usedRequest() string {
	if l == nil || l.rare == nil || l.rare.cause == nil {
		return ""
	}
	// A failed sync may be retried for the same request.
	if cause := l.rare.cause; cause.Event != "" && l.verb != events.VerbFailed {
		return cause.Event
	}
	return l.rare.cause.Earlier
}

// statusRevision returns the revision of the last published status.
func (l *lastEvent) statusRevision() string {
	if l == nil || l.rare == nil || l.rare.status == nil {
		return ""
	}
	return l.rare.status.Revision
}

// since returns Since of the events.Change, which is zero for most sources.
func (l *lastEvent) since() time.Time {
	if l.rare == nil {
		return time.Time{}
	}
	return l.rare.since
}

// hold returns Hold of the events.Change, which is empty for most sources.
func (l *lastEvent) hold() string {
	if l.rare == nil {
		return ""
	}
	return l.rare.hold
}

// inStore returns the state of a secret in a store, or nil.
func (l *lastEvent) inStore() *storeState {
	if l == nil || l.rare == nil {
		return nil
	}
	return l.rare.store
}

// texts returns the fingerprints of the keys that existed, by name.
func (l *lastEvent) texts() map[string]string {
	texts := make(map[string]string, len(l.keys))
	for _, k := range l.keys {
		if !k.gone {
			texts[k.name] = k.sum.text(l.keyID)
		}
	}
	return texts
}

// content returns an event with the same content and the times at which the keys changed.
func (l *lastEvent) content(verb events.Verb) events.Change {
	change := events.Change{
		Verb: verb, UID: l.uid, ResourceVersion: l.version,
		Fingerprint: l.all.text(l.keyID), ChangedAt: l.changedAt, CreatedAt: l.createdAt, Since: l.since(), Truncated: l.truncated,
	}
	if l.rare != nil && l.rare.recent != nil {
		change.Recent = sumTexts(l.rare.recent.sums, l.keyID)
	}
	if !l.truncated {
		change.Keys = make(map[string]events.Key, len(l.keys))
	}
	for _, k := range l.keys {
		entry := events.Key{ChangedAt: k.changedAt}
		if !k.gone {
			entry.Fingerprint = k.sum.text(l.keyID)
		}
		change.Keys[k.name] = entry
	}
	return change
}
