package events

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"
)

// TombstoneTTL is how long StreamChanges keeps the event of a deleted source. A source that is created again within this time
// is compared with its previous content. After this time, it counts as new.
const TombstoneTTL = 24 * time.Hour

// tombstoneKept is how long a deletion is kept after it was stored. It is longer than on the stream, because the clocks may differ.
const tombstoneKept = TombstoneTTL + time.Hour

// LastChanges contains the last known change of each source. The changes may be put in any order, and more than once. It concludes nothing from the
// absence of a change: changes that the stream has lost stay. It is safe for concurrent use.
type LastChanges struct {
	origins Origins

	mu sync.RWMutex
	// changes contains the changes by the cluster, kind and namespace, as an Address without a name, and by the name of the source.
	changes    map[Address]map[string]*LastChange
	unreadable map[Address]*LastChange // the last unreadable event, where no later event was readable
}

// NewLastChanges returns an empty LastChanges for the sources of the clusters.
func NewLastChanges(origins Origins) *LastChanges {
	return &LastChanges{origins: origins, changes: make(map[Address]map[string]*LastChange), unreadable: make(map[Address]*LastChange)}
}

// Put records an event of a source. It reports whether the event changes the source or its state, and returns the event known before. It ignores
// earlier events. The same event at another position of the stream, to which it was published again, is not new, unless a later one is unreadable. An
// unreadable event does not replace the known one, see IsUnreadable.
func (l *LastChanges) Put(at Address, c *LastChange) (before *LastChange, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := at
	group.Name = ""
	known, unreadable := l.changes[group][at.Name], l.unreadable[at]
	switch {
	case known != nil && c.isBefore(known):
		return nil, false
	case c.verb == 0:
		if unreadable == nil || unreadable.isBefore(c) {
			l.unreadable[at] = c
		}
		return nil, false
	}
	wasUnreadable := unreadable != nil && unreadable.isBefore(c)
	if wasUnreadable {
		delete(l.unreadable, at)
	}
	isSame := known != nil && known.isSame(c)
	if isSame {
		moved := *known
		moved.Seq, moved.storedAt, moved.Epoch = c.Seq, c.storedAt, c.Epoch
		c = &moved
	}
	source := at.Source()
	before, _ = l.last(source)
	l.set(group, at.Name, c)
	if last, _ := l.last(source); isSame && !wasUnreadable || last != c {
		return nil, false
	}
	return before, true
}

// set copies the strings that it keeps, for the same reason as NewLastChange.
func (l *LastChanges) set(group Address, name string, c *LastChange) {
	sources := l.changes[group]
	if sources == nil {
		intern := func(text string) string { return unique.Make(text).Value() }
		group = Address{Cluster: intern(group.Cluster), Kind: Kind(intern(string(group.Kind))), Namespace: intern(group.Namespace)}
		sources = make(map[string]*LastChange)
		l.changes[group] = sources
	}
	sources[strings.Clone(name)] = c
}

// Change returns the last change of a source in both forms. The LastChange is nil if a later event could not be read, or if none is known, although
// the source may exist. For a secret in a store, about which several clusters may have events, it is the change with the latest time in the store.
func (l *LastChanges) Change(source Source) (Change, *LastChange) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	last, cluster := l.last(source)
	if last == nil || l.isUnreadable(source) {
		return Change{}, nil
	}
	return last.Change(cluster, source), last
}

// last returns the last change of a source, also if a later event could not be read, and the cluster of its event.
func (l *LastChanges) last(source Source) (newest *LastChange, of string) {
	for _, cluster := range l.origins.clusters(source.Kind) {
		c := l.changes[Address{Cluster: cluster, Kind: source.Kind, Namespace: source.Namespace}][source.Name]
		if c != nil && (newest == nil || CompareVersions(c.ResourceVersion, newest.ResourceVersion) > 0) {
			newest, of = c, cluster
		}
	}
	return newest, of
}

// IsUnreadable reports whether the last event of a source could not be read.
func (l *LastChanges) IsUnreadable(source Source) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.isUnreadable(source)
}

func (l *LastChanges) isUnreadable(source Source) bool {
	return slices.ContainsFunc(l.origins.clusters(source.Kind), func(cluster string) bool {
		return l.unreadable[Address{Cluster: cluster, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}] != nil
	})
}

// Unreadable returns the addresses of unreadable events without a later readable one, and their sequences.
func (l *LastChanges) Unreadable() map[Address]uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	found := make(map[Address]uint64, len(l.unreadable))
	for at, c := range l.unreadable {
		found[at] = c.Seq
	}
	return found
}

// Each calls fn with the last readable change of each source of a kind that a namespace can reference, in no order. Secrets in stores have none.
// fn must not call methods of the LastChanges: with a waiting Put, both would block forever.
func (l *LastChanges) Each(kind Kind, namespace string, fn func(name string, c *LastChange)) {
	if kind == KindOpenBao {
		namespace = ""
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, cluster := range l.origins.clusters(kind) {
		l.each(Address{Cluster: cluster, Kind: kind, Namespace: namespace}, func(source Source, c *LastChange) { fn(source.Name, c) })
	}
}

// All is like Each, for the sources of all kinds and namespaces.
func (l *LastChanges) All(fn func(source Source, c *LastChange)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for group := range l.changes {
		l.each(group, fn)
	}
}

// each calls fn for the sources of a group with a last change. Call it with the lock.
func (l *LastChanges) each(group Address, fn func(source Source, c *LastChange)) {
	for name, c := range l.changes[group] {
		source := Source{Kind: group.Kind, Namespace: group.Namespace, Name: name}
		if last, _ := l.last(source); c == last {
			fn(source, c)
		}
	}
}

// Forget drops deletions that the stream has dropped because of their age. Their sources are then unknown.
func (l *LastChanges) Forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for group, sources := range l.changes {
		maps.DeleteFunc(sources, func(_ string, c *LastChange) bool {
			return c.Verb() == VerbDeleted && now.Sub(c.StoredAt()) >= tombstoneKept
		})
		if len(sources) == 0 {
			delete(l.changes, group)
		}
	}
}

// isBefore reports whether an event on a subject is earlier than another one. The resourceVersions of one object decide, except for a deletion, and
// so do the sequences of one epoch. Otherwise, the stream may have been restored or created again, and the clock of NATS decides.
func (c *LastChange) isBefore(other *LastChange) bool {
	if c.UID == other.UID {
		if order := CompareVersions(c.ResourceVersion, other.ResourceVersion); order != 0 {
			return order < 0
		}
	}
	switch {
	case c.Epoch == other.Epoch:
		return c.Seq < other.Seq
	case c.storedAt == other.storedAt:
		return c.Epoch < other.Epoch
	}
	return c.storedAt < other.storedAt
}

// isSame reports whether two events report the same about the same state of an object.
func (c *LastChange) isSame(other *LastChange) bool {
	return c.UID == other.UID && c.ResourceVersion == other.ResourceVersion && (c.Verb() == VerbDeleted) == (other.Verb() == VerbDeleted) &&
		c.keyID == other.keyID && c.All == other.All && c.ChangedAt == other.ChangedAt && c.Ignore == other.Ignore &&
		c.rare().Hold == other.rare().Hold && (c.rare().Buckets == nil) == (other.rare().Buckets == nil) &&
		maps.Equal(c.rare().Uncounted, other.rare().Uncounted)
}
