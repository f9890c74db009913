// Package plan decides what a change of a source means to a workload, whether people let the workload roll now, and who of the workloads of a
// namespace waits for whom. It is pure: the same input gives the same decision, and it uses no clock, no API server, no stream and no telemetry.
package plan

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// clockMargin is how far apart two writes must be to know which came first: times are precise to a second, and each API server has its clock.
const clockMargin = 10 * time.Second

// RevertRetries is how many times a roll for a change is repeated after someone else has reverted it.
const RevertRetries = 3

var unwanted = map[workload.WantReason]Reason{
	workload.NotWanted:  NotOptedIn,
	workload.Excluded:   Excluded,
	workload.OnlyPulled: PulledOnly,
	workload.KeyNotRead: KeysNotConsumed,
}

// question is a change of a source and a workload that wants it.
type question struct {
	w    *workload.Workload
	ref  *workload.Reference
	keys []string
	now  events.Change
	// memory is what the leader remembers, and policy is that of the installation.
	memory Memory
	policy Policy
	// seen is what the pods read of the source.
	seen view
	// last is the workload's record for the source: what it was last rolled for. recorded says that there is one.
	last     workload.RolledFor
	recorded bool
}

// answer completes a decision, and returns its reason as it is without what holds a roll.
func (q *question) answer(decision *Decision) Reason {
	why := q.reason()
	decision.Keys, decision.Record, decision.Reason = q.seen.changed, q.record(), why
	rolls := why.Action() == Roll
	switch {
	case rolls && q.w.Suspended:
		decision.Reason = Suspended
	case q.w.Aborted && (rolls || why == PodsStarting):
		decision.Reason = Aborted
	case rolls && q.now.Hold != "" && !q.w.RollsNow():
		decision.Reason, decision.Hold = SourceOnHold, q.now.Hold
	}
	decision.Anew = q.isAnew()
	decision.Contradicted = q.isContradicted()
	return why
}

// record returns the entry to record once the pods have the content of the event.
func (q *question) record() workload.RolledFor {
	record := workload.RolledFor{Fingerprint: q.seen.fingerprint, Version: q.seen.changedAt, UID: q.now.UID, Scope: q.seen.scope}
	if q.isDeletion() {
		return workload.DeletedAfter(record)
	}
	return record
}

// date determines when the content that the pods read last changed, if its keys do not say so.
func (q *question) date() {
	if q.isDeletion() || q.isRecreated() || q.isBack() || q.isRolledFor() {
		q.seen.changedAt = q.now.ResourceVersion
	}
	if q.seen.changedAt == "" && !q.waited() && !q.hasReadIt() && q.startedWithout() {
		q.seen.changedAt = q.now.CreatedAt
	}
	// The source was gone in between, and is back with what it had. Pods may have started without it. If nothing is to roll for that, an earlier
	// change counts, which may still wait.
	if q.policy.Create != CreateNever && (!q.recorded || q.isNoted()) && !needs(q.ref) && events.Newer(q.now.CreatedAt, q.seen.changedAt) {
		q.seen.changedAt = q.now.CreatedAt
	}
	if q.seen.changedAt != "" || !q.recorded {
		return
	}
	// The event does not say when the content changed, because the stream has no earlier event. The workload's record shows whether it did.
	this := q.last.UID == q.now.UID && q.last.Version == q.now.ResourceVersion
	if this || q.isNoted() || q.last.Differs(q.record()) {
		q.seen.changedAt = q.now.ResourceVersion
	}
}

func (q *question) reason() Reason {
	now, seen := q.now, q.seen
	switch {
	case now.Ignore:
		return SourceIgnored
	case now.Verb == events.VerbDeleted:
		return q.byDeletion()
	case seen.changedAt == "" && now.ChangedAt == "":
		return FirstSeen
	case seen.changedAt == "":
		return KeysNotConsumed
	}
	has := q.hasContent()
	if q.isRecreated() {
		has = None
	}
	if has != None && !q.mayHaveOther(has) {
		return has
	}
	return q.lacksContent(has != None)
}

// mayHaveOther reports whether pods may have content other than what the workload was rolled for or had before.
func (q *question) mayHaveOther(has Reason) bool {
	return (has == ChangedBack || has == SameContent) && q.hasWaited() && q.w.Progress.Pods > 0
}

// lacksContent decides about content that the pods are not known to have. With cameBack, they had the same content before the workload waited.
func (q *question) lacksContent(cameBack bool) Reason {
	reverts := q.w.Reverts(q.now.Source.String(), q.record())
	switch {
	case reverts > RevertRetries:
		return Reverted
	case q.lacksRequired():
		return KeyMissing
	case reverts == 0 && q.isBeforeOptIn():
		return BeforeOptIn
	case reverts > 0:
		return Changed // The template is that from before the roll, and the pods may be, too.
	case q.isTemplateNewer() && q.w.IsReplacingPods():
		return PodsStarting
	case q.isTemplateNewer():
		return PodsNewer
	case q.isBornAfter():
		return PodsNewer
	case cameBack:
		return Changed // Pods that started meanwhile may have read the other content.
	}
	return q.byCreation()
}

// hasContent returns the reason why the pods already have the content, or None if they are not known to have it.
func (q *question) hasContent() Reason {
	changedAt := q.seen.changedAt
	if !q.recorded {
		switch from := q.memory.From; {
		case q.w.HasDropped(q.now.Source, changedAt):
			return AlreadyRolled
		case from != nil && viewOf(*from, q.keys).fingerprint == q.seen.fingerprint:
			return ChangedBack
		}
		return None
	}
	// The resourceVersions of another object of this name may come from another cluster, for example after a restore from a backup.
	same := q.last.UID == q.now.UID
	switch {
	case same && events.Newer(q.last.Version, changedAt), q.isOfEarlierObject():
		return AlreadyRolled
	case same && q.last.Version == changedAt && changedAt != q.now.ResourceVersion:
		return KeysNotConsumed
	case same && q.last.Version == changedAt:
		return AlreadyRolled
	case q.last.Fingerprint == q.seen.fingerprint && !q.isLinked():
		return SameContent
	}
	return None
}

// isOfEarlierObject reports whether the record is certainly about a later object of this name, as after a restore of the stream. The record must be
// of this cluster for that, whose resourceVersions are compared: then the workload was created before it was recorded.
func (q *question) isOfEarlierObject() bool {
	isObject := q.now.Source.Kind != events.KindOpenBao && q.recorded && q.last.UID != q.now.UID
	return isObject && events.Newer(q.last.Version, q.now.ResourceVersion) && events.Newer(q.w.Version, q.last.Version) &&
		q.w.Patched.After(q.w.Created)
}

// isNoted reports whether the record has nothing about the source but that the workload is to be rolled for it.
func (q *question) isNoted() bool { return q.recorded && q.last.IsOwed() }

// startedWithout reports whether pods may have started before the source was created. If the source existed when the cluster was first watched,
// pods may have done so if nobody else has written the workload since the source's creation: then at least its template is older. The actuator may
// have recorded what the pods read of another source.
func (q *question) startedWithout() bool {
	if q.now.Since.IsZero() {
		return true
	}
	written := q.w.Created
	if q.w.Edited.After(written) {
		written = q.w.Edited
	}
	return written.Before(q.now.Since)
}

// waited reports whether the pods could not start before the source appeared. Pods that served by then read an earlier source of this name.
func (q *question) waited() bool {
	served := q.now.Source.Kind != events.KindOpenBao && events.Newer(q.now.CreatedAt, q.w.ServingSince)
	return needs(q.ref) && !served
}

// hasReadIt reports whether the source is back with unchanged content, and the pods, which need it, have read that before it was gone or after.
func (q *question) hasReadIt() bool {
	isBack := q.now.Verb == events.VerbObserved || q.now.Created
	return needs(q.ref) && isBack && q.now.Previous != ""
}

// needs reports whether the pods cannot start without the source. If so, they have read what it was created with.
func needs(ref *workload.Reference) bool { return ref != nil && !ref.Optional && !ref.ByPull }

// lacksRequired reports whether the source lacks a key without which new pods could not start.
func (q *question) lacksRequired() bool {
	isMissing := func(name string) bool { return q.now.Keys[name].Fingerprint == "" }
	return q.ref != nil && !q.now.Truncated && slices.ContainsFunc(q.ref.Required, isMissing)
}
