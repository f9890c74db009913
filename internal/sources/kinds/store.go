package kinds

import (
	"strconv"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeState is the state of a secret in a store according to the last event.
type storeState struct {
	version   int64
	revision  string    // the last part of the event's id
	at        time.Time // orders the events
	writtenAt time.Time // by the store's clock
	seenAt    time.Time // when the watcher saw the state, by its clock, but no later than when this watcher read the event, by its own
}

// inStore returns the state of a secret in a store. It is nil if there is no event, or one whose resourceVersion is not a time.
func (l *LastEvent) inStore() *storeState {
	store := l.rare().Store
	if store == nil {
		return nil
	}
	nanoseconds, err := strconv.ParseInt(l.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	return &storeState{
		version: store.Version, revision: store.Revision, at: time.Unix(0, nanoseconds), writtenAt: l.WrittenAt(), seenAt: l.Time(),
	}
}

// AssessStore returns the event for an observation of a secret in a store: see compareStore.
func AssessStore(ring *Keyring, before *LastEvent, seen openbao.Observation, first time.Time) (events.Change, bool) {
	change, ok := compareStore(before, seen, first)
	if ok {
		current := ring.fingerprint(change.Source, storeContent(change))[0]
		change.Fingerprint, change.Trace = current.all.Text(current.keyID), seen.Trace
	}
	return change, ok
}

// compareStore returns the event for an observation of a secret in a store, compared with the last event on its subject. It returns false if there
// is nothing to publish. It is a pure function.
//
//	last event      observation        event
//	none            audited            rotated or deleted; none if the store has nothing there
//	none            not audited        rotated if it was written since the mount is watched; none if it is not live; otherwise observed
//	live            the same           none
//	live            another version    rotated
//	live            not live           deleted
//	deleted         live               rotated: undeleted, or written again
//	any             an earlier state   none; rotated if it lasts
//
// first is when the first secret of the mount was seen, or zero. An older secret existed before the store was watched.
func compareStore(before *LastEvent, seen openbao.Observation, first time.Time) (events.Change, bool) {
	recorded := before.inStore()
	change := events.Change{
		Source: seen.Path.Source(), Verb: events.VerbRotated, UID: seen.Path.Store, Truncated: true, WrittenAt: seen.At.UTC(),
		Store: &events.StoreState{
			Servers: seen.Servers, Engine: seen.Engine, Version: seen.Version, Operation: seen.Operation, By: seen.By,
			Revision: storeRevision(seen), LagSeconds: int64(seen.Lag / time.Second),
		},
	}
	at := seen.At
	if at.IsZero() || seen.ReadAt.IsZero() && at.After(seen.Received) {
		// A line of KV v1 with a time in the future would hide the next lines.
		at = seen.Received
	}
	switch {
	case recorded == nil:
		if change.Verb = firstVerb(seen, at, first); change.Verb == "" {
			return events.Change{}, false
		}
		change.Created = change.Verb == events.VerbRotated && (seen.Version == 1 || seen.Operation == "create")
	case IsKnown(before, seen):
		return events.Change{}, false
	default:
		change.ChangedAt, change.CreatedAt = before.ChangedAt, before.CreatedAt
		change.Previous = before.Fingerprint()
		if !at.After(recorded.at) {
			// The store reports no time for an undeletion or the removal of metadata. Its clock may also have been set back.
			if at = seen.Received; !at.After(recorded.at) {
				at = recorded.at.Add(1)
			}
		}
		if seen.State != openbao.Live {
			change.Verb = events.VerbDeleted
		}
		change.Store.Revision = nextRevision(before, seen)
	}
	change.ResourceVersion = strconv.FormatInt(at.UnixNano(), 10)
	if change.Verb == events.VerbRotated {
		change.ChangedAt = change.ResourceVersion
	}
	if change.Created {
		change.CreatedAt = change.ResourceVersion
	}
	return change, true
}

// firstVerb returns the verb of the first event of a secret, which is empty if there is nothing to publish.
func firstVerb(seen openbao.Observation, at, first time.Time) events.Verb {
	switch live := seen.State == openbao.Live; {
	case !live && (seen.Operation == "" || seen.State == openbao.Gone && !seen.ReadAt.IsZero()):
		return "" // The deletion of a secret that never existed succeeds, too.
	case !live:
		return events.VerbDeleted
	case seen.Operation == "" && !isNew(seen, at, first):
		return events.VerbObserved
	}
	return events.VerbRotated
}

// isNew reports whether a secret found by polling was written after the mount was first watched. One that was written before the previous poll
// existed then, but was not visible.
func isNew(seen openbao.Observation, at, first time.Time) bool {
	if !seen.PolledBefore.IsZero() {
		return at.After(seen.PolledBefore)
	}
	return !first.IsZero() && at.After(first)
}

// IsKnown reports whether the last event shows the observed state or a later one. It returns false if there is no event.
func IsKnown(before *LastEvent, seen openbao.Observation) bool {
	recorded := before.inStore()
	if recorded == nil {
		return false
	}
	live, wasLive := seen.State == openbao.Live, before.Verb() != events.VerbDeleted
	switch {
	case !live && !wasLive:
		return seen.Version <= recorded.version
	case storeRevision(seen) == recorded.revision,
		live == wasLive && seen.Version == recorded.version && seen.At.Equal(recorded.writtenAt) && !seen.ReadAt.IsZero():
		return true // Each write in KV v1 is a change, even if two have the same time.
	case seen.Version > recorded.version && recorded.version > 0, seen.At.After(recorded.at):
		return false
	case seen.ReadAt.IsZero():
		// The states in KV v1 are ordered only by time, and a store's clock may be set back.
		return !seen.Received.After(recorded.seenAt)
	}
	// A state that was read before the last event was seen may be that of the event.
	return !seen.ReadAt.After(recorded.seenAt) || isOlder(before, seen) && !seen.Lasting
}

// isOlder reports whether an observed state is earlier than that of the last event, so that it comes from a server that lags behind. A state that was
// written later does not count as older, because the secret was created again.
func isOlder(before *LastEvent, seen openbao.Observation) bool {
	recorded, wasLive := before.inStore(), before.Verb() != events.VerbDeleted
	return seen.State == openbao.Live && !seen.At.After(recorded.at) && (wasLive || seen.Version < recorded.version)
}

// Restores finds secrets that were restored from a snapshot: reads keep returning an older state than that of the last event. For an engine without
// versions, states are ordered by the clocks of the store's servers, which may differ. It is safe for concurrent use.
type Restores struct {
	mu    sync.Mutex
	older map[events.Source]olderState
}

type olderState struct {
	revision string
	since    time.Time
}

// NewRestores returns an empty Restores.
func NewRestores() *Restores { return &Restores{older: make(map[events.Source]olderState)} }

// Lasts records an observation of a secret, and reports whether observations have had an older state than the last event for at least events.MaxLag.
func (r *Restores) Lasts(source events.Source, before *LastEvent, seen openbao.Observation) bool {
	recorded := before.inStore()
	if recorded == nil || !seen.ReadAt.After(recorded.seenAt) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isAnother := seen.Version < recorded.version
	if seen.Version == 0 {
		isAnother = !seen.At.IsZero() && !seen.At.Equal(recorded.writtenAt)
	}
	if !isAnother || !isOlder(before, seen) {
		delete(r.older, source)
		return false
	}
	waiting, ok := r.older[source]
	if revision := storeRevision(seen); !ok || waiting.revision != revision {
		r.older[source] = olderState{revision: revision, since: seen.ReadAt}
		return false
	}
	return seen.ReadAt.Sub(waiting.since) >= events.MaxLag
}

// storeRevision returns the last part of the event's ID for an observation. It identifies the state, independently of the way of the observation. It
// contains the creation time of a version, because versions start at one again for a secret that is created again.
func storeRevision(seen openbao.Observation) string {
	version, at := strconv.FormatInt(seen.Version, 10), timePart(seen.At)
	switch {
	case seen.Request != "":
		return "request/" + seen.Request
	case seen.State == openbao.Gone:
		return "gone" + at
	case seen.Engine != events.EngineKV:
		return "rotated" + at
	case seen.State == openbao.Deleted:
		return version + "/deleted" + at
	case seen.State == openbao.Destroyed:
		return version + "/destroyed"
	}
	return version + at
}

// nextRevision is storeRevision after an event, which distinguishes changes for which the store reports no time.
func nextRevision(before *LastEvent, seen openbao.Observation) string {
	version := strconv.FormatInt(seen.Version, 10)
	switch wasLive := before.Verb() != events.VerbDeleted; {
	case seen.Request != "":
	case seen.State == openbao.Gone:
		return "gone/" + before.ResourceVersion
	case seen.State == openbao.Destroyed:
		return version + "/destroyed/" + before.ResourceVersion
	case seen.Lasting:
		return storeRevision(seen) + "/restored/" + before.ResourceVersion
	case seen.State == openbao.Live && !wasLive && seen.Version > 0 && seen.Version == before.inStore().version:
		return version + "/undeleted/" + before.ResourceVersion
	}
	return storeRevision(seen)
}

func timePart(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "/" + strconv.FormatInt(at.UnixNano(), 10)
}

// storeContent returns the data to fingerprint for a secret in a store: its version and the time of its write. The version alone is not enough,
// because it starts at one again for a recreated secret. The watcher never sees the content itself.
func storeContent(change events.Change) map[string][]byte {
	content := change.Store.Revision
	if change.Store.Version > 0 {
		content = strconv.FormatInt(change.Store.Version, 10) + "@" + strconv.FormatInt(change.WrittenAt.UnixNano(), 10)
	}
	if change.Verb == events.VerbDeleted {
		content = "deleted:" + content
	}
	return map[string][]byte{"state": []byte(content)}
}
