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
	Seq                                        uint64    // the event's sequence on the stream
	UID, ResourceVersion, ChangedAt, CreatedAt string    // as in the Change
	All                                        Sum       // the fingerprint of all keys, under the key KeyID
	Keys                                       []LastKey // sorted by name; empty if Truncated is set and there are no buckets
	// Rare is nil for most sources, but not for a secret in a store. Copies share it, so it must not be changed.
	Rare *RareFields

	keyID unique.Handle[string]
	// These times are in nanoseconds since 1970, or zero if unknown: when the stream stored the event, Change.Time, and Change.WrittenAt.
	storedAt, seenAt, writtenAt int64
	Epoch                       uint32 // the epoch of the reader in which the event has this sequence
	trace                       traceparent
	// verb is an index of changeVerbs. It is zero if the event could not be read. Then only its position on the stream is known.
	verb uint8

	Truncated, Ignore, Match, Created bool // as in the Change
	hasPrevious, previousIsSame       bool // the kept part of Change.Previous
	// Lost means that the stream has lost this event. Seq is then the sequence of the older event that the stream has, or zero if it has none. The
	// publisher sets it, and publishes the event again.
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

// RareFields contains the fields that few events have, behind a pointer to keep LastChange small. Recent has the form of LastChange.All, and Buckets
// that of LastChange.Keys. Added contains the sorted names of the keys with Key.Added, and TraceState belongs to the trace context. The other fields
// are as in Change.
type RareFields struct {
	Since      time.Time
	Hold       string
	Cause      *Cause
	Status     *Status
	Store      *StoreState
	Writers    []string
	Recent     []Sum
	Buckets    []LastKey
	Added      []string
	TraceState string
	Generated  *Generated
	Problem    string
	// Uncounted contains the keys that do not count, or that count again, with only Ignored and Since.
	Uncounted map[string]Key
}

// changeVerbs lists the verbs of changes. The first means that the event could not be read.
var changeVerbs = [...]Verb{"", VerbObserved, VerbChanged, VerbDeleted, VerbRotated, VerbSynced, VerbIssued, VerbFailed}

// UnreadableChange returns the LastChange of an event that cannot be read, which the stream stored at the given time.
func UnreadableChange(seq uint64, storedAt time.Time) LastChange {
	return LastChange{Seq: seq, storedAt: nanoseconds(storedAt)}
}

// NewLastChange copies the kept fields of a change, with its sequence and the time at which it was stored, which may be zero. The attributes of an
// event share one string, and keeping one would keep all. Strings that many sources share are interned.
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
	if err := c.setRare(change); err != nil {
		return LastChange{}, err
	}
	if !change.Truncated || len(change.Buckets) > 0 {
		if c.Keys, err = c.lastKeys(change.Keys); err != nil {
			return LastChange{}, err
		}
		c.setUncounted(change.Keys)
	}
	for code := range uint8(len(changeVerbs)) {
		if changeVerbs[code] == change.Verb {
			c.verb = code
			return c, nil
		}
	}
	return LastChange{}, fmt.Errorf("verb %q is not that of a change", change.Verb)
}

// shared returns the resourceVersion, as the kept string if it is that of the last change or of the object.
func (c *LastChange) shared(version string) string {
	switch version {
	case c.ResourceVersion:
		return c.ResourceVersion
	case c.ChangedAt:
		return c.ChangedAt
	}
	return version
}

// parseSum parses a fingerprint, which must be under the same key as the fingerprint of all keys.
func (c *LastChange) parseSum(text string) (Sum, error) {
	id, sum, err := parseSum(text)
	if err == nil && id != c.KeyID() {
		err = fmt.Errorf("fingerprint %q is not under the key of %q", text, c.Fingerprint())
	}
	return sum, err
}

func (c *LastChange) lastKeys(keys map[string]Key) (last []LastKey, err error) {
	last = make([]LastKey, 0, len(keys))
	for name, k := range keys {
		entry := LastKey{Name: name, ChangedAt: c.shared(k.ChangedAt)}
		if k.Fingerprint != "" {
			if entry.Sum, err = c.parseSum(k.Fingerprint); err != nil {
				return nil, err
			}
			if entry.IsGone() {
				return nil, fmt.Errorf("fingerprint %q is that of no value", k.Fingerprint)
			}
		}
		last = append(last, entry)
	}
	slices.SortFunc(last, func(a, b LastKey) int { return strings.Compare(a.Name, b.Name) })
	return last, nil
}

func (c *LastChange) setUncounted(keys map[string]Key) {
	for name, k := range keys {
		if k.Ignored == "" && k.Since == "" {
			continue
		}
		if c.Rare == nil {
			c.Rare = &RareFields{}
		}
		if c.Rare.Uncounted == nil {
			c.Rare.Uncounted = make(map[string]Key)
		}
		c.Rare.Uncounted[name] = Key{Ignored: unique.Make(k.Ignored).Value(), Since: c.shared(k.Since)}
	}
}

// setRare sets Rare if the change has any of its fields.
func (c *LastChange) setRare(change Change) error {
	rare := RareFields{
		Since: change.Since, Hold: change.Hold, Cause: change.Cause, Status: change.Status, TraceState: strings.Clone(change.Trace.State),
		Generated: change.Generated, Problem: change.Problem,
	}
	if change.Store != nil {
		rare.Store = internStore(*change.Store)
	}
	for _, name := range change.Writers {
		rare.Writers = append(rare.Writers, unique.Make(name).Value())
	}
	for _, text := range change.Recent {
		sum, err := c.parseSum(text)
		if err != nil {
			return err
		}
		rare.Recent = append(rare.Recent, sum)
	}
	if len(change.Buckets) > 0 {
		var err error
		if rare.Buckets, err = c.lastKeys(change.Buckets); err != nil {
			return err
		}
	}
	for name, k := range change.Keys {
		if k.Added && (!change.Truncated || len(change.Buckets) > 0) {
			rare.Added = append(rare.Added, name)
		}
	}
	slices.Sort(rare.Added)
	if !rare.Since.IsZero() || rare.Hold != "" || rare.Cause != nil || rare.Status != nil || rare.Store != nil || rare.Writers != nil ||
		rare.Recent != nil || rare.Buckets != nil || rare.Added != nil || rare.TraceState != "" || rare.Generated != nil || rare.Problem != "" {
		c.Rare = &rare
	}
	return nil
}

// internStore returns a copy that shares the texts that are equal for most secrets of a store.
func internStore(state StoreState) *StoreState {
	intern := func(text string) string { return unique.Make(text).Value() }
	state.Engine, state.Operation, state.By = intern(state.Engine), intern(state.Operation), intern(state.By)
	state.Servers = slices.Clone(state.Servers)
	for i, server := range state.Servers {
		state.Servers[i] = intern(server)
	}
	return &state
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeAt(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

// otherFingerprint stands for the previous fingerprint of a LastChange, if it was a different one.
const otherFingerprint = "other"

// Verb returns the verb of the change, or "" if the event could not be read.
func (c *LastChange) Verb() Verb { return changeVerbs[c.verb] }

// KeyID returns the ID of the key of the fingerprints.
func (c *LastChange) KeyID() string {
	if c.keyID == (unique.Handle[string]{}) {
		return ""
	}
	return c.keyID.Value()
}

// Fingerprint returns the fingerprint of all keys as text.
func (c *LastChange) Fingerprint() string { return c.All.Text(c.KeyID()) }

// Time returns when the watcher saw the change.
func (c *LastChange) Time() time.Time { return timeAt(c.seenAt) }

// WrittenAt returns the time of the newest write to the object, by the API server's clock. It is zero if unknown.
func (c *LastChange) WrittenAt() time.Time { return timeAt(c.writtenAt) }

// StoredAt returns when the stream stored the event. It is zero if unknown.
func (c *LastChange) StoredAt() time.Time { return timeAt(c.storedAt) }

// Trace returns the context of the span that created the event.
func (c *LastChange) Trace() TraceContext {
	return TraceContext{Parent: c.trace.text(), State: c.rare().TraceState}
}

func (c *LastChange) rare() RareFields {
	if c.Rare == nil {
		return RareFields{}
	}
	return *c.Rare
}

// Change returns the change of a source. Its Previous only shows whether there was a previous fingerprint, and whether it was the same.
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
	rare := c.rare()
	if !c.Truncated || rare.Buckets != nil {
		change.Keys = c.byName(c.Keys)
	}
	if rare.Buckets != nil {
		change.Buckets = c.byName(rare.Buckets)
	}
	change.Since, change.Hold, change.Cause, change.Status, change.Store = rare.Since, rare.Hold, rare.Cause, rare.Status, rare.Store
	change.Writers, change.Generated, change.Problem = rare.Writers, rare.Generated, rare.Problem
	for _, sum := range rare.Recent {
		change.Recent = append(change.Recent, sum.Text(c.KeyID()))
	}
	for _, name := range rare.Added {
		key := change.Keys[name]
		key.Added = true
		change.Keys[name] = key
	}
	for name, uncounted := range rare.Uncounted {
		key := change.Keys[name]
		key.Ignored, key.Since = uncounted.Ignored, uncounted.Since
		change.Keys[name] = key
	}
	return change
}

// byName is the inverse of lastKeys.
func (c *LastChange) byName(last []LastKey) map[string]Key {
	keys := make(map[string]Key, len(last))
	for _, k := range last {
		entry := Key{ChangedAt: k.ChangedAt}
		if !k.IsGone() {
			entry.Fingerprint = k.Sum.Text(c.KeyID())
		}
		keys[k.Name] = entry
	}
	return keys
}

// changed returns Change.Changed: the keys that changed last, if the event reports a change. A creation changes all keys.
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
	return names
}
