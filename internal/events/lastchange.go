package events

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"
)

// LastChange is the last event of a source in compact form. Watchers and actuators keep one for each source.
type LastChange struct {
	// Seq is the event's sequence on the stream.
	Seq uint64
	// UID, ResourceVersion, ChangedAt and CreatedAt are those of the Change.
	UID, ResourceVersion, ChangedAt, CreatedAt string
	// All is the fingerprint of all keys, under the key that KeyID names.
	All Sum
	// Keys is in no order. It is empty if Truncated is set.
	Keys []LastKey
	// Rare is nil for most sources, but not for a secret in a store. Copies share it, so it must not be changed.
	Rare *RareFields

	keyID unique.Handle[string]
	// These times are in nanoseconds since 1970, or zero if unknown: when the stream stored the event, Change.Time, and Change.WrittenAt.
	storedAt, seenAt, writtenAt int64
	// epoch is the epoch of a Follower in which the event has this sequence.
	epoch uint32
	trace traceparent
	// verb is an index of changeVerbs. It is zero if the event could not be read. Then only its place on the stream is known.
	verb uint8

	// Truncated, Ignore, Match and Created are those of the Change.
	Truncated, Ignore, Match, Created bool
	// hasPrevious and previousIsSame are what is kept of Change.Previous.
	hasPrevious, previousIsSame bool
	// Lost means that the stream no longer has this event, and that Seq is the sequence of the older event that the stream has, or zero if it has
	// none. The publisher sets it, and publishes the event again.
	Lost bool
}

// LastKey is one data key. A removed key is kept with the zero Sum, so that later events still report the removal.
type LastKey struct {
	Name      string
	Sum       Sum
	ChangedAt string
}

// IsGone reports whether the key was removed.
func (k LastKey) IsGone() bool { return k.Sum == Sum{} }

// RareFields has the fields that few events have, behind a pointer to keep LastChange small. Recent is in the form of LastChange.All, and TraceState
// is that of the trace context. The others are those of Change.
type RareFields struct {
	Since      time.Time
	Hold       string
	Cause      *Cause
	Status     *Status
	Store      *StoreState
	Recent     []Sum
	TraceState string
}

// changeVerbs lists the verbs of changes. The first means that the event could not be read.
var changeVerbs = [...]Verb{"", VerbObserved, VerbChanged, VerbDeleted, VerbRotated, VerbSynced, VerbIssued, VerbFailed}

// NewLastChange copies what it keeps of a change, with its sequence on the stream and the time at which it was stored, which may be zero. The
// attributes of an event that was read share one string, the whole header, so that keeping one of them would keep the whole header in memory. Strings
// that many sources share are interned.
func NewLastChange(seq uint64, storedAt time.Time, change Change) (LastChange, error) {
	keyID, all, err := parseSum(change.Fingerprint)
	if err != nil {
		return LastChange{}, err
	}
	c := LastChange{
		Seq: seq, UID: strings.Clone(change.UID), ResourceVersion: strings.Clone(change.ResourceVersion),
		All: all, keyID: unique.Make(keyID), storedAt: nanoseconds(storedAt), seenAt: nanoseconds(change.Time),
		writtenAt: nanoseconds(change.WrittenAt), trace: newTraceparent(change.Trace.Parent),
		Truncated: change.Truncated, Ignore: change.Ignore, Match: change.Match, Created: change.Created,
		hasPrevious: change.Previous != "", previousIsSame: change.Previous == change.Fingerprint,
	}
	c.ChangedAt = c.shared(change.ChangedAt)
	c.CreatedAt = c.shared(change.CreatedAt)
	if c.Rare, err = newRareFields(change, keyID); err != nil {
		return LastChange{}, err
	}
	if !change.Truncated {
		if c.Keys, err = c.newKeys(change.Keys, keyID); err != nil {
			return LastChange{}, err
		}
	}
	for code := range uint8(len(changeVerbs)) {
		if changeVerbs[code] == change.Verb {
			c.verb = code
			return c, nil
		}
	}
	return LastChange{}, fmt.Errorf("verb %q is not that of a change", change.Verb)
}

// shared returns the resourceVersion, as the string that is kept already if it is that of the last change or of the object.
func (c *LastChange) shared(version string) string {
	switch version {
	case c.ResourceVersion:
		return c.ResourceVersion
	case c.ChangedAt:
		return c.ChangedAt
	}
	return version
}

func (c *LastChange) newKeys(keys map[string]Key, keyID string) ([]LastKey, error) {
	list := make([]LastKey, 0, len(keys))
	for name, k := range keys {
		entry := LastKey{Name: name, ChangedAt: c.shared(k.ChangedAt)}
		if k.Fingerprint != "" {
			id, sum, err := parseSum(k.Fingerprint)
			switch {
			case err != nil:
				return nil, err
			case id != keyID:
				return nil, fmt.Errorf("fingerprint %q is not under the key of %q", k.Fingerprint, c.All.Text(keyID))
			}
			if entry.Sum = sum; entry.IsGone() {
				return nil, fmt.Errorf("fingerprint %q is that of no value", k.Fingerprint)
			}
		}
		list = append(list, entry)
	}
	return list, nil
}

// newRareFields returns nil if the change has none.
func newRareFields(change Change, keyID string) (*RareFields, error) {
	rare := RareFields{
		Since: change.Since, Hold: change.Hold, Cause: change.Cause, Status: change.Status, TraceState: strings.Clone(change.Trace.State),
	}
	if change.Store != nil {
		rare.Store = internStore(*change.Store)
	}
	for _, text := range change.Recent {
		id, sum, err := parseSum(text)
		switch {
		case err != nil:
			return nil, err
		case id != keyID:
			return nil, fmt.Errorf("fingerprint %q is not under the key of the event, %q", text, keyID)
		}
		rare.Recent = append(rare.Recent, sum)
	}
	if rare.Since.IsZero() && rare.Hold == "" && rare.Cause == nil && rare.Status == nil && rare.Store == nil && rare.Recent == nil &&
		rare.TraceState == "" {
		return nil, nil
	}
	return &rare, nil
}

// internStore returns a copy that shares the texts that are the same for most secrets of a store.
func internStore(state StoreState) *StoreState {
	intern := func(text string) string { return unique.Make(text).Value() }
	state.Engine, state.Operation, state.By = intern(state.Engine), intern(state.Operation), intern(state.By)
	state.Servers = slices.Clone(state.Servers)
	for i, server := range state.Servers {
		state.Servers[i] = intern(server)
	}
	return &state
}

// nanoseconds returns the nanoseconds since 1970, or zero for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeAt is the inverse of nanoseconds.
func timeAt(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
