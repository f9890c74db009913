package plan

import (
	"github.com/keyturn/keyturn/internal/events"
)

// byCreation decides about content that the pods are not known to have, and that may be there since the source was created.
func (q *question) byCreation() Reason {
	switch {
	case !q.hasAppeared():
		return Changed
	case q.isRecreated():
		return Recreated
	case q.waited() && !q.recorded:
		return PodsWaited
	case (!q.recorded || q.isBack()) && q.policy.Create == CreateNever:
		return CreationIgnored
	case !needs(q.ref) && q.policy.Create != CreateNever:
		return Appeared
	}
	return Changed // The record is about an earlier source of this name, with other content.
}

// hasAppeared reports whether what the pods read has not changed since the source was created.
func (q *question) hasAppeared() bool {
	hasChanged := q.now.CreatedAt != "" && events.Newer(q.now.ChangedAt, q.now.CreatedAt)
	isBack := q.isBack() && (q.now.Created || q.now.Verb == events.VerbObserved && !hasChanged)
	return q.now.CreatedAt != "" && q.seen.changedAt == q.now.CreatedAt || isBack || q.isRecreated()
}

// isRecreated reports whether the source was created again with the content that the workload has, and the policy rolls workloads for that. Each
// object of the name has its own UID, which is in the record once the workload was rolled for it. A secret in a store is not an object.
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

// isAnew reports whether the source may be a different object from the one that the pods have read. The kubelet does not notice when an
// immutable object is replaced by another one.
func (q *question) isAnew() bool {
	if q.recorded {
		return q.last.UID != q.now.UID || q.isBack()
	}
	return q.now.Created || q.hasAppeared()
}

// isRolledFor reports whether the workload was rolled for this very event, which is about an object and not only its content.
func (q *question) isRolledFor() bool {
	isCreation := q.now.Verb == events.VerbObserved || q.now.Created
	return q.recorded && isCreation && q.last.UID == q.now.UID && q.last.Version == q.now.ResourceVersion
}
