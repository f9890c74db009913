// Package plan decides what a change of a source means for a workload. It is pure: equal inputs lead to equal decisions, and it uses
// no clock, API server, stream or telemetry.
package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// bornAfterMargin is how much younger than a write a workload must be, by the API servers' timestamps, to count as created after
// it. The timestamps have a precision of one second, and the clocks of several servers differ.
const bornAfterMargin = 10 * time.Second

// Decide decides what a change of a source means for a workload:
//
//	w     the workload as last seen
//	now   the last event of the source
//	from  the content before the first undecided change; nil if unknown
//
// It compares states, not steps, so that an event that is redelivered, late, or supersedes others leads to the same result.
func Decide(w *workload.Workload, now events.Change, from *events.Change) Decision {
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	decision := Decision{Source: now.Source, Want: want}
	if !want.Wanted() {
		decision.Reason = unwanted[want.Reason]
		return decision
	}
	seen := view(now, want.Keys)
	if seen.changedAt == "" && !needs(ref) {
		seen.changedAt = now.CreatedAt
	}
	decision.Keys = seen.changed
	decision.Record = workload.RolledFor{Fingerprint: seen.fingerprint, Version: seen.changedAt, UID: now.UID}
	decision.Reason = reason(w, ref, seen, now, from, want.Keys)
	return decision
}

var unwanted = map[workload.WantReason]Reason{
	workload.NotWanted:  NotOptedIn,
	workload.Excluded:   Excluded,
	workload.OnlyPulled: PulledOnly,
	workload.KeyNotRead: KeysNotConsumed,
}

func reason(w *workload.Workload, ref *workload.Reference, seen glimpse, now events.Change, from *events.Change, keys []string) Reason {
	switch {
	case now.Ignore:
		return SourceIgnored
	case now.Verb == events.VerbDeleted:
		return SourceDeleted
	case now.ChangedAt == "":
		return FirstSeen
	case seen.changedAt == "":
		return KeysNotConsumed
	}
	last, rolledBefore := w.Rolled[now.Source.String()]
	if rolledBefore {
		// An object of this name with another UID may come from another cluster, as after a restore from a backup. Its
		// resourceVersions cannot be compared.
		same := last.UID == now.UID
		switch {
		case same && workload.Newer(last.Version, seen.changedAt):
			return Stale
		case same && last.Version == seen.changedAt && seen.changedAt != now.ResourceVersion:
			return KeysNotConsumed
		case same && last.Version == seen.changedAt:
			return AlreadyRolled
		case last.Fingerprint == seen.fingerprint:
			return SameContent
		}
	} else if from != nil && view(*from, keys).fingerprint == seen.fingerprint {
		return ChangedBack
	}
	appeared := now.CreatedAt != "" && seen.changedAt == now.CreatedAt
	switch {
	case ref != nil && !now.Truncated && lacks(now, ref.Required):
		return KeyMissing
	case workload.Newer(w.TemplateVersion, seen.changedAt):
		return PodsNewer
	case !now.WrittenAt.IsZero() && w.Created.After(now.WrittenAt.Add(bornAfterMargin)):
		return PodsNewer
	case appeared && needs(ref) && !rolledBefore:
		return PodsWaited
	case appeared && !needs(ref):
		return Appeared
	}
	return Changed
}

// needs reports whether the pods cannot start without the source. They can only have started after it was created.
func needs(ref *workload.Reference) bool { return ref != nil && !ref.Optional && !ref.ByPull }

// lacks reports whether one of the keys is missing.
func lacks(change events.Change, keys []string) bool {
	return slices.ContainsFunc(keys, func(name string) bool { return change.Keys[name].Fingerprint == "" })
}

// glimpse is the part of a source that the pods of a workload read.
type glimpse struct {
	// fingerprint is the fingerprint of that part.
	fingerprint string
	// changedAt is the resourceVersion of its last change. Empty if it has not changed since the source was first seen.
	changedAt string
	// changed are its keys that changed with the event.
	changed []string
}

// view returns the part of a source that has the keys. It is the whole source if keys is nil, or if the event does not list them.
func view(change events.Change, keys []string) glimpse {
	if keys == nil || change.Truncated {
		return glimpse{fingerprint: change.Fingerprint, changedAt: change.ChangedAt, changed: change.Changed}
	}
	seen := glimpse{}
	digest := sha256.New()
	for _, name := range keys {
		key := change.Keys[name]
		if key.ChangedAt != "" && (seen.changedAt == "" || workload.Newer(key.ChangedAt, seen.changedAt)) {
			seen.changedAt = key.ChangedAt
		}
		if key.ChangedAt == change.ResourceVersion {
			seen.changed = append(seen.changed, name)
		}
		for _, part := range []string{name, key.Fingerprint} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			digest.Write(length[:])
			digest.Write([]byte(part))
		}
	}
	// The input of the digest is keyed already, so the result has the form of a fingerprint under the same key.
	keyID, _, _ := strings.Cut(change.Fingerprint, ":")
	seen.fingerprint = keyID + ":" + hex.EncodeToString(digest.Sum(nil)[:16])
	return seen
}
