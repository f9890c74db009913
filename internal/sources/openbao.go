package sources

import (
	"strconv"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeLast is what the stream says of a secret in a store, besides what it says of every source.
type storeLast struct {
	version int64
	// at is the order of the event, and writtenAt the store's time of the state.
	at, writtenAt time.Time
	// seenAt is when the watcher saw it, by the watcher's clock.
	seenAt time.Time
}

func newStoreLast(change events.Change) *storeLast {
	if change.Store == nil {
		return nil
	}
	nanoseconds, err := strconv.ParseInt(change.ResourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	return &storeLast{
		version: change.Store.Version, at: time.Unix(0, nanoseconds), writtenAt: change.WrittenAt, seenAt: change.Time,
	}
}

// compareStore says what was seen of a secret in a store means against the last event on its subject. It is a pure function.
//
//	stream says     seen               event
//	nothing         by its audit       rotated or deleted
//	nothing         when polled        rotated where it was written after first; else observed; none where it is not live
//	live            as it was          none
//	live            another version    rotated
//	live            not live           deleted
//	deleted         live               rotated: undeleted, or written again
//	anything        what was earlier   none
//
// First is when the first secret of the same mount was seen; zero where none was. A secret that is older was there before
// anybody looked.
func compareStore(before *last, seen openbao.Observation, first time.Time) (events.Change, bool) {
	live := seen.State == openbao.Live
	change := events.Change{
		Source: seen.Path.Source(), Verb: events.VerbRotated, UID: seen.Path.Store, Truncated: true, WrittenAt: seen.At.UTC(),
		Store: &events.StoreState{
			Servers: seen.Servers, Engine: seen.Engine, Version: seen.Version, Operation: seen.Operation, By: seen.By,
			Revision: revision(seen),
		},
	}
	at := seen.At
	if at.IsZero() {
		at = seen.Received
	}
	switch {
	case !before.tells() || !isOfStore(before):
		switch {
		case !live && seen.Operation == "":
			return events.Change{}, false
		case !live:
			change.Verb = events.VerbDeleted
		case seen.Operation == "" && (first.IsZero() || !at.After(first)):
			change.Verb = events.VerbObserved
		default:
			change.Created = seen.Version == 1 || seen.Operation == "create"
		}
	case settled(before, seen):
		return events.Change{}, false
	default:
		change.ChangedAt, change.CreatedAt = before.changedAt, before.createdAt
		change.Previous = before.all.text(before.keyID)
		if !at.After(before.store.at) {
			// The store tells no time of the step: an undeletion, or the end of the metadata.
			at = seen.Received
		}
		switch wasLive := before.verb != events.VerbDeleted; {
		case !live:
			change.Verb = events.VerbDeleted
			if seen.State == openbao.Gone && seen.Request == "" {
				change.Store.Revision = "gone/" + before.version
			}
		case !wasLive && seen.Version > 0 && seen.Version == before.store.version:
			change.Store.Revision += "/undeleted/" + before.version
		}
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

// isOfStore tells whether the last event was one of a secret in a store.
func isOfStore(before *last) bool { return before != nil && before.more != nil && before.store != nil }

// settled tells whether the stream says what was seen already, or something later.
func settled(before *last, seen openbao.Observation) bool {
	known, live, wasLive := before.store, seen.State == openbao.Live, before.verb != events.VerbDeleted
	if !live && !wasLive {
		return seen.Version <= known.version
	}
	if seen.Version > known.version && known.version > 0 {
		return false
	}
	if live == wasLive && seen.Version == known.version && seen.At.Equal(known.writtenAt) {
		return true
	}
	if seen.ReadAt.IsZero() {
		return !seen.At.After(known.at)
	}
	// What was read before the last event was seen may be what that event is about. A lower version is one that a server
	// which lags behind still has, unless it was written later: then the secret was made anew.
	return !seen.ReadAt.After(known.seenAt) || live && !seen.At.After(known.at) && (wasLive || seen.Version < known.version)
}

// revision is the last part of the event's id. It is the same whichever way the state was seen.
func revision(seen openbao.Observation) string {
	version, at := strconv.FormatInt(seen.Version, 10), strconv.FormatInt(seen.At.UnixNano(), 10)
	switch {
	case seen.Request != "":
		return "request/" + seen.Request
	case seen.Engine != events.EngineKV:
		return "rotated/" + at
	case seen.State == openbao.Deleted:
		return version + "/deleted/" + at
	case seen.State == openbao.Destroyed:
		return version + "/destroyed"
	}
	return version
}

// storeContent is what the fingerprint of a secret in a store is of: which version it is, and when that was written, as the
// versions of a secret that is made anew begin at one again. The content itself the watcher never sees.
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

// maxSightings is how many secrets may wait for their event to be published.
const maxSightings = 10000

// sightings holds what was seen in the stores and is not on the stream yet: of each secret the latest. It is safe for use
// by several goroutines.
type sightings struct {
	mu   sync.Mutex
	seen map[events.Source]*openbao.Observation
	// first is when the first secret of each mount was seen.
	first map[events.StorePath]time.Time
}

func newSightings() *sightings {
	return &sightings{seen: make(map[events.Source]*openbao.Observation), first: make(map[events.StorePath]time.Time)}
}

// add is false where there is no room.
func (s *sightings) add(seen openbao.Observation) bool {
	source := seen.Path.Source()
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.seen[source]
	switch {
	case waiting == nil && len(s.seen) >= maxSightings:
		return false
	case waiting != nil && waiting.Version == seen.Version && waiting.State == seen.State && seen.Operation == "":
		// What the audit said of it is more.
	case waiting == nil || !laterThan(waiting, &seen):
		s.seen[source] = &seen
	}
	return true
}

// laterThan tells whether a is certainly of a later state than b.
func laterThan(a, b *openbao.Observation) bool {
	if a.Version != b.Version && a.At.After(b.At) {
		return true
	}
	return !b.ReadAt.IsZero() && a.Received.After(b.Received) && a.ReadAt.After(b.ReadAt)
}

func (s *sightings) get(source events.Source) *openbao.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[source]
}

// done forgets what was seen, unless something was seen since.
func (s *sightings) done(source events.Source, seen *openbao.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[source] == seen {
		delete(s.seen, source)
	}
}

// published takes note of when an event of a secret was made.
func (s *sightings) published(source events.Source, at time.Time) {
	path, err := source.StorePath()
	if err != nil {
		return
	}
	path.Path = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.first[path]; !ok || at.Before(first) {
		s.first[path] = at
	}
}

func (s *sightings) firstOf(path events.StorePath) time.Time {
	path.Path = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[path]
}
