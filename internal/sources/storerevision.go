package sources

import (
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeRevision returns the last part of the event's id for what was seen. It names the state, and does not depend on how that was
// observed. A version has the time at which it was created, because the versions of a secret that is created again start at one again.
func storeRevision(seen openbao.Observation) string {
	version, at := strconv.FormatInt(seen.Version, 10), timePart(seen.At)
	switch {
	case seen.Request != "" && seen.Version > 0:
		return version + "/request/" + seen.Request
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

// nextRevision is storeRevision after an event. The store reports no time for some changes, so that the event before tells one from the
// next.
func nextRevision(before *lastEvent, seen openbao.Observation) string {
	version := strconv.FormatInt(seen.Version, 10)
	switch wasLive := before.verb != events.VerbDeleted; {
	case seen.Request != "":
	case seen.State == openbao.Gone:
		return "gone/" + before.version
	case seen.State == openbao.Destroyed:
		return version + "/destroyed/" + before.version
	case seen.Lasting:
		return storeRevision(seen) + "/restored/" + before.version
	case seen.State == openbao.Live && !wasLive && seen.Version > 0 && seen.Version == before.inStore().version:
		return version + "/undeleted/" + before.version
	}
	return storeRevision(seen)
}

func timePart(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "/" + strconv.FormatInt(at.UnixNano(), 10)
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
