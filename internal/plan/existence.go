package plan

import (
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// byCreation decides about content that the pods are not known to have and that may date from the creation of the source.
func (q *question) byCreation() Reason {
	switch {
	case q.waitedForKey() && q.isOfKeys() && q.w.IsReplacingPods():
		return PodsStarting // Earlier pods could start without the key, and stay if the change of the workload is undone.
	case q.waitedForKey():
		return PodsWaited
	case !q.hasAppeared():
		return Changed
	case q.isRecreated():
		return Appeared
	case q.waited() && !q.recorded:
		return PodsWaited
	case (!q.recorded || q.isBack()) && q.policy.Create == CreateNever:
		return CreationIgnored
	case !needs(q.ref) && q.policy.Create != CreateNever:
		return Appeared
	}
	return Changed // The record is about an earlier source with this name and other content.
}

// waitedForKey reports whether the pods could not start before the source got a new key, and nothing that they read has changed since. It is false if
// pods served by then, if the record covers the key, which thus existed, or if the workload already waits to be rolled.
func (q *question) waitedForKey() bool {
	if q.ref == nil || q.isNoted() || q.recorded && q.last.Scope == "" {
		return false
	}
	return slices.ContainsFunc(q.ref.Required, func(name string) bool {
		key := q.now.Keys[name]
		return key.Added && !events.Newer(key.ChangedAt, q.w.ServingSince) && !events.Newer(q.seen.changedAt, key.ChangedAt) &&
			(!q.isOfKeys() || q.isRecordedWithout(name))
	})
}

// isRecordedWithout reports whether the record covers the source without a key, so that earlier pods could start without the key.
func (q *question) isRecordedWithout(name string) bool {
	before := q.now
	before.Keys = maps.Clone(before.Keys)
	delete(before.Keys, name)
	return viewOf(before, q.want).fingerprint == q.last.Fingerprint
}

// isOfKeys reports whether the record covers exactly the keys that the pods read now and that count. If so, no key was missing that these pods, or
// earlier pods with the same keys, required.
func (q *question) isOfKeys() bool {
	return q.recorded && q.want.Keys != nil && q.last.Scope == q.seen.scope
}

// hadRequired reports whether the source once had the required key that it lacks: the record covers it, or the event says that the key or the last
// key of its bucket was removed.
func (q *question) hadRequired() bool {
	return q.isOfKeys() || slices.ContainsFunc(q.ref.Required, func(name string) bool {
		key, isListed := q.now.Key(name)
		return key.Fingerprint == "" && (isListed || key.ChangedAt != "")
	})
}

// hasAppeared reports whether the content that the pods read has not changed since the creation of the source.
func (q *question) hasAppeared() bool {
	hasChanged := q.now.CreatedAt != "" && events.Newer(q.now.ChangedAt, q.now.CreatedAt)
	isBack := q.isBack() && (q.now.Created || q.now.Verb == events.VerbObserved && !hasChanged)
	return q.now.CreatedAt != "" && q.seen.changedAt == q.now.CreatedAt || isBack || q.isRecreated()
}

// isRecreated reports whether the source was created again with unchanged content and the policy rolls workloads for that. Each object of a name has
// its own UID, which the record contains after a roll for it. A secret in a store has no UID.
func (q *question) isRecreated() bool {
	now := q.now
	if q.policy.Create != CreateAlways || now.Source.Kind == events.KindOpenBao || !q.isNoted() && !q.isNews(now.ResourceVersion) {
		return false
	}
	if q.recorded && !q.isNoted() {
		return q.last.UID != now.UID && !q.isOfEarlierObject() && !q.last.Differs(q.record())
	}
	return now.Verb == events.VerbObserved && now.Previous != "" && now.Previous == now.Fingerprint
}

// isAnew reports whether the source may be another object than the pods have read. If that was immutable, the kubelet does not notice.
func (q *question) isAnew() bool {
	if q.recorded {
		return q.last.UID != q.now.UID || q.isBack()
	}
	return q.now.Created || q.hasAppeared()
}

// isRolledFor reports whether the workload was rolled for this very event, if that is about the object and not only about its content.
func (q *question) isRolledFor() bool {
	isCreation := q.now.Verb == events.VerbObserved || q.now.Created
	return q.recorded && isCreation && q.last.UID == q.now.UID && q.last.Version == q.now.ResourceVersion
}

// Forgotten returns the deletion of a source without an event: the stream forgets deletions after a day, but the workload may have noted this one.
func Forgotten(w *workload.Workload, source events.Source) events.Change {
	noted := w.Rolled[source.String()]
	return events.Change{
		Source: source, Verb: events.VerbDeleted, UID: noted.UID, ResourceVersion: noted.Version, Fingerprint: noted.Fingerprint,
		Match: true,      // unknown, so assume a match
		Time:  w.Patched, // It was noted at this time or earlier.
	}
}

// byDeletion decides about a source that was deleted.
func (q *question) byDeletion() Reason {
	reverts := q.w.Reverts(q.now.Source.String(), q.record())
	switch {
	case !q.isDeletion():
		return SourceDeleted
	case q.recorded && q.last.IsDeleted() && !q.distrusted:
		return AlreadyRolled // Even if another object was created and deleted since, the pods have none of its content.
	case needs(q.ref):
		return SourceDeleted // New pods could not start without it.
	case reverts > RevertRetries:
		return Reverted
	case reverts == 0 && q.isMadeAfter() && q.w.IsReplacingPods():
		return PodsStarting
	case reverts == 0 && q.isMadeAfter():
		return PodsNewer
	}
	return Deleted
}

// isMadeAfter reports whether the workload or its pod template was certainly written after the watcher saw the deletion of the source. It compares
// times, because the event lacks the resourceVersion of the deletion.
func (q *question) isMadeAfter() bool {
	seen := q.now.Time.Add(clockMargin)
	return !q.now.Time.IsZero() && (q.w.Created.After(seen) || q.w.TemplateWritten.After(seen))
}

// isBack reports whether the source exists again after the workload was rolled without it, so that the pods have none of its content.
func (q *question) isBack() bool {
	return q.recorded && q.last.IsDeleted() && q.now.Verb != events.VerbDeleted
}
