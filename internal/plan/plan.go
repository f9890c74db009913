// Package plan decides what a change of a source means to a workload. It is pure: the same input gives the same decision, and it
// knows no clock, no API server, no stream and no telemetry.
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

// bornAfterMargin is by how much a workload must be younger than a write, by the clocks of the API servers, to be sure
// that it was made after it. Their times have one second's precision, and several servers have several clocks.
const bornAfterMargin = 10 * time.Second

// Decide decides what a change of a source does to a workload. It is a pure function of what is known:
//
//	w     the workload as last seen
//	now   the last event of the source
//	from  the content before the first change that is not decided yet; nil where it is not known
//
// It looks at states, not at steps: an event that comes twice, late, or in place of others that it superseded on the
// stream, leads to the same end.
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
		// The resourceVersions of another object of this name may be of another cluster, as after a restore from a backup.
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

// needs tells whether the pods cannot start without the source: they have read it as it was created.
func needs(ref *workload.Reference) bool { return ref != nil && !ref.Optional && !ref.ByPull }

// lacks tells whether one of the keys is not there.
func lacks(change events.Change, keys []string) bool {
	return slices.ContainsFunc(keys, func(name string) bool { return change.Keys[name].Fingerprint == "" })
}

// glimpse is what the pods of a workload see of a source.
type glimpse struct {
	// fingerprint is over all that they see.
	fingerprint string
	// changedAt is the resourceVersion at which something of it last changed. Empty: not since the source was first seen.
	changedAt string
	// changed are the keys of it that the event itself is about.
	changed []string
}

// view gives what is seen of a source through some of its keys. With nil, or where the event does not list the keys, all
// of it is seen.
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
	// What goes into the digest is keyed already. It has the form of a fingerprint, under the same key.
	keyID, _, _ := strings.Cut(change.Fingerprint, ":")
	seen.fingerprint = keyID + ":" + hex.EncodeToString(digest.Sum(nil)[:16])
	return seen
}
