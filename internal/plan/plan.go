// Package plan decides what a change of a source means to a workload. It is pure: the same input gives the same decision, and it
// knows no clock, no API server, no stream and no telemetry.
package plan

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// bornAfterMargin is by how much a workload must be younger than a write, by the clocks of the API servers, to be sure that it was created
// after it. The times are precise to a second, and each server has its own clock.
const bornAfterMargin = 10 * time.Second

// Decide returns what a change of a source does to a workload:
//
//	w     the workload as last seen
//	now   the last event of the source
//	from  the content before the first change that is not decided yet; nil if it is not known
//
// It compares states, not steps: an event that is redelivered, late, or supersedes others leads to the same end.
func Decide(w *workload.Workload, now events.Change, from *events.Change) Decision {
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	decision := Decision{Source: now.Source, Want: want}
	if !want.Wanted() {
		decision.Reason = unwanted[want.Reason]
		return decision
	}
	seen := viewOf(now, want.Keys)
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

func reason(w *workload.Workload, ref *workload.Reference, seen view, now events.Change, from *events.Change, keys []string) Reason {
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
		// The resourceVersions of another object of this name may be those of another cluster, as after a restore from a backup.
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
	} else if from != nil && viewOf(*from, keys).fingerprint == seen.fingerprint {
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

// needs reports whether the pods cannot start without the source. Then they have read it as it was created.
func needs(ref *workload.Reference) bool { return ref != nil && !ref.Optional && !ref.ByPull }

// lacks reports whether one of the keys is missing.
func lacks(change events.Change, keys []string) bool {
	return slices.ContainsFunc(keys, func(name string) bool { return change.Keys[name].Fingerprint == "" })
}
