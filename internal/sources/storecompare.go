package sources

import (
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// compareStore returns the event for an observation of a secret in a store, compared with the last event on its subject. It
// returns false if there is nothing to say. It is a pure function.
//
//	last event      observation        event
//	none            by its audit       rotated or deleted
//	none            by polling         rotated if it was written after first; none if it is not live; otherwise observed
//	live            the same           none
//	live            another version    rotated
//	live            not live           deleted
//	deleted         live               rotated: undeleted, or written again
//	any             an earlier state   none
//
// First is when the first secret of the same mount was seen, or zero. A secret older than that existed before the store was
// watched.
func compareStore(before *lastEvent, seen openbao.Observation, first time.Time) (events.Change, bool) {
	recorded, live := before.inStore(), seen.State == openbao.Live
	change := events.Change{
		Source: seen.Path.Source(), Verb: events.VerbRotated, UID: seen.Path.Store, Truncated: true, WrittenAt: seen.At.UTC(),
		Store: &events.StoreState{
			Servers: seen.Servers, Engine: seen.Engine, Version: seen.Version, Operation: seen.Operation, By: seen.By,
			Revision: storeRevision(seen),
		},
	}
	at := seen.At
	if at.IsZero() {
		at = seen.Received
	}
	switch {
	case !before.isReadable() || recorded == nil:
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
	case isKnown(before, seen):
		return events.Change{}, false
	default:
		change.ChangedAt, change.CreatedAt = before.changedAt, before.createdAt
		change.Previous = before.all.text(before.keyID)
		if !at.After(recorded.at) {
			// The store reports no time for an undeletion, or for the removal of the metadata.
			at = seen.Received
		}
		switch wasLive := before.verb != events.VerbDeleted; {
		case !live:
			change.Verb = events.VerbDeleted
			if seen.State == openbao.Gone && seen.Request == "" {
				change.Store.Revision = "gone/" + before.version
			}
		case !wasLive && seen.Version > 0 && seen.Version == recorded.version:
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

// isKnown reports whether the last event is about the observed state or a later one. It returns false if there is no event.
func isKnown(before *lastEvent, seen openbao.Observation) bool {
	recorded := before.inStore()
	if recorded == nil {
		return false
	}
	live, wasLive := seen.State == openbao.Live, before.verb != events.VerbDeleted
	if !live && !wasLive {
		return seen.Version <= recorded.version
	}
	if seen.Version > recorded.version && recorded.version > 0 {
		return false
	}
	if live == wasLive && seen.Version == recorded.version && seen.At.Equal(recorded.writtenAt) {
		return true
	}
	if seen.ReadAt.IsZero() {
		return !seen.At.After(recorded.at)
	}
	// A state that was read before the last event was seen may be the one of that event. A lower version comes from a server
	// that lags behind, unless it was written later: then the secret was created again.
	return !seen.ReadAt.After(recorded.seenAt) || live && !seen.At.After(recorded.at) && (wasLive || seen.Version < recorded.version)
}

// storeRevision returns the last part of the event's id. It does not depend on how the state was observed.
func storeRevision(seen openbao.Observation) string {
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

// storeContent returns the data to fingerprint for a secret in a store: its version and when that was written, because the
// versions of a secret that is created again start at one again. The watcher never sees the content itself.
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
