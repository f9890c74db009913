package plan

import "github.com/keyturn/keyturn/internal/events"

// byCreation decides about content that the pods are not known to have, and that may have come with the creation of the source.
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
	return Changed // What the workload has recorded of an earlier source of this name is other content.
}

// hasAppeared reports whether what the pods read is as it was when the source was created.
func (q *question) hasAppeared() bool {
	isBack := q.isBack() && (q.now.Created || q.now.Verb == events.VerbObserved)
	return q.now.CreatedAt != "" && q.seen.changedAt == q.now.CreatedAt || isBack || q.isRecreated()
}

// isRecreated reports whether the source was created anew with the content that the workload has, and whether that has it rolled. Each object
// of the name has a UID of its own, which the record has once it was rolled. A secret in a store is no object.
func (q *question) isRecreated() bool {
	now := q.now
	if q.policy.Create != CreateAlways || now.Source.Kind == events.KindOpenBao {
		return false
	}
	if q.recorded {
		return q.last.UID != now.UID && !q.last.Differs(q.record())
	}
	return now.Verb == events.VerbObserved && now.Previous != "" && now.Previous == now.Fingerprint
}

// isAnew reports whether the source may be another object than the one that the pods have read. The kubelet does not look for another one in the
// place of an immutable one.
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
