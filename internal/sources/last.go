package sources

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
)

// last is what the stream says of a source: the compact form of the last event on its subject.
type last struct {
	seq uint64
	// verb is empty where no event of the source could be read. Nothing but the sequence is known then.
	verb      events.Verb
	uid       string
	version   string
	keyID     string
	all       sum
	changedAt string
	createdAt string
	truncated bool
	keys      []lastKey
	// more is nil where there is nothing of it, as with most. Of a secret in a store there always is.
	*more
}

// more is what few events say.
type more struct {
	// used is the event that had the source written last.
	used string
	// revision is that of the status.
	revision string
	// store is there for a secret in a store only.
	store *storeLast
}

// lastKey is one data key. Gone is a key that was removed: it is kept so that the removal outlives the event of it.
type lastKey struct {
	name      string
	sum       sum
	gone      bool
	changedAt string
}

func newLast(seq uint64, change events.Change) (*last, error) {
	keyID, all, err := parseSum(change.Fingerprint)
	if err != nil {
		return nil, err
	}
	l := &last{
		// The attributes of an event that was read are parts of one string, which is its whole header. Whoever keeps one keeps
		// them all in memory, so what is kept is copied, and once only where many have the same.
		seq: seq, verb: change.Verb, uid: strings.Clone(change.UID), version: strings.Clone(change.ResourceVersion),
		keyID: unique.Make(keyID).Value(), all: all, changedAt: change.ChangedAt, createdAt: change.CreatedAt, truncated: change.Truncated, keys: make([]lastKey, 0, len(change.Keys)),
	}
	if m := moreOf(change); m != (more{}) {
		l.more = &m
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

func parseSum(text string) (keyID string, s sum, err error) {
	id, digits, _ := strings.Cut(strings.TrimPrefix(text, "k"), ":")
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != sumSize || sum(raw).text(id) != text {
		return "", sum{}, fmt.Errorf("fingerprint %q is not k<key id>:<%d hex digits>", text, 2*sumSize)
	}
	return id, sum(raw), nil
}

func moreOf(change events.Change) more {
	m := more{store: newStoreLast(change)}
	if change.Status != nil {
		m.revision = change.Status.Revision
	}
	if cause := change.Cause; cause != nil {
		m.used = cause.Event
		// What has failed may be tried again for the same event.
		if m.used == "" || change.Verb == events.VerbFailed {
			m.used = cause.Earlier
		}
	}
	return m
}

// usedCause is the id of the event that had the source written last, as far as the stream knows.
func (l *last) usedCause() string {
	if l == nil || l.more == nil {
		return ""
	}
	return l.used
}

// statusRevision is the revision of the status that was told last.
func (l *last) statusRevision() string {
	if l == nil || l.more == nil {
		return ""
	}
	return l.revision
}

// tells is whether anything is known of the source.
func (l *last) tells() bool { return l != nil && l.verb != "" }

// fingerprints gives the keys that were there, as text.
func (l *last) fingerprints() map[string]string {
	texts := make(map[string]string, len(l.keys))
	for _, k := range l.keys {
		if !k.gone {
			texts[k.name] = k.sum.text(l.keyID)
		}
	}
	return texts
}

// ledger holds the last event of every source that the stream knows. It is safe for use by several goroutines.
type ledger struct {
	mu      sync.RWMutex
	entries map[events.Source]*last
}

func newLedger() *ledger { return &ledger{entries: make(map[events.Source]*last)} }

func (l *ledger) get(source events.Source) *last {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.entries[source]
}

func (l *ledger) set(source events.Source, entry *last) {
	// Copied for the reason that newLast gives.
	source.Namespace, source.Name = unique.Make(source.Namespace).Value(), strings.Clone(source.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry == nil {
		delete(l.entries, source)
		return
	}
	l.entries[source] = entry
}

// supersede takes the sequence of an event that cannot be read. What earlier ones said stays known.
func (l *ledger) supersede(source events.Source, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var entry last
	if known := l.entries[source]; known != nil {
		entry = *known
	}
	entry.seq = seq
	l.entries[source] = &entry
}

// count is how many sources of a kind there are, as far as the stream knows.
type count struct{ existing, failing int64 }

// count counts the sources that exist by kind, and those of which the last event says that something failed.
func (l *ledger) count() map[events.Kind]count {
	l.mu.RLock()
	defer l.mu.RUnlock()
	counts := make(map[events.Kind]count)
	for source, entry := range l.entries {
		if !entry.tells() || entry.verb == events.VerbDeleted {
			continue
		}
		n := counts[source.Kind]
		n.existing++
		if entry.verb == events.VerbFailed {
			n.failing++
		}
		counts[source.Kind] = n
	}
	return counts
}

// sources lists the sources that exist, as far as the stream knows.
func (l *ledger) sources() []events.Source {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]events.Source, 0, len(l.entries))
	for source, entry := range l.entries {
		if entry.tells() && entry.verb != events.VerbDeleted {
			list = append(list, source)
		}
	}
	return list
}
