package kinds

import (
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeRevision returns the last part of the event's ID for an observation. It identifies the state, independently of how that was observed. It has
// the creation time of a version, because versions start at one again if a secret is created again.
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

// nextRevision is storeRevision after an event. The store reports no time for some changes, so the previous event is used to distinguish them.
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

// storeContent returns the data to fingerprint for a secret in a store: its version and the time at which that was
// written. The version alone is not enough: it starts at one again when a secret is recreated. The watcher never sees the content itself.
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
