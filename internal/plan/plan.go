// Package plan decides what a change of a source means for a workload, whether users allow a roll now, and which workloads of a namespace wait for
// which others. It is pure: the same input gives the same decision, without a clock, API server, stream or telemetry.
package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// RevertRetries is how often a roll for a change is repeated after another client has reverted it.
const RevertRetries = 3

var unwanted = map[workload.WantReason]Reason{
	workload.NotWanted:  NotOptedIn,
	workload.Excluded:   Excluded,
	workload.OnlyPulled: PulledOnly,
	workload.KeyNotRead: KeysNotConsumed,
}

// answer completes a decision, and returns the reason that it would have without a hold.
func (q *question) answer(decision *Decision) Reason {
	why := q.blaming(q.reason())
	decision.Keys, decision.Uncounted, decision.Record, decision.Reason = q.seen.changed, q.seen.uncounted, q.record(), why
	rolls := why.Action() == Roll
	if rolls {
		decision.Keys, decision.Writers = q.altered(), q.writers()
	}
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

// date determines when the content that the pods read has last changed, if its keys do not tell.
func (q *question) date() {
	if q.isDeletion() || q.isRecreated() || q.isBack() || q.isRolledFor() {
		q.seen.changedAt = q.now.ResourceVersion
	}
	if q.seen.changedAt == "" && !q.waited() && !q.hasReadIt() && q.startedWithout() {
		q.seen.changedAt = q.now.CreatedAt
	}
	// The source was deleted and created again with the same content, and pods may have started without it, unless the record has that content. If
	// this needs no roll, an earlier change counts, which may still wait.
	mayLackIt := q.policy.Create != CreateNever && (!q.recorded || q.isNoted()) || q.differs()
	if mayLackIt && !needs(q.ref) && events.Newer(q.now.CreatedAt, q.seen.changedAt) {
		q.seen.changedAt = q.now.CreatedAt
	}
	if q.seen.changedAt != "" || !q.recorded {
		return
	}
	// The stream has no earlier event, so the event does not tell when the content changed. The record shows whether it changed.
	this := q.last.UID == q.now.UID && q.last.Version == q.now.ResourceVersion
	hasChanged := this || q.differs()
	if q.isNoted() {
		hasChanged = !q.isNoteOver()
	}
	if hasChanged {
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

// mayHaveOther reports whether pods may have other content than the record or memory says.
func (q *question) mayHaveOther(has Reason) bool {
	return (has == ChangedBack || has == SameContent) && q.hasWaited() && q.w.Progress.Pods > 0
}

// lacksContent decides about content that the pods are not known to have. CameBack says that they had it before the workload waited.
func (q *question) lacksContent(cameBack bool) Reason {
	reverts := q.w.Reverts(q.now.Source.String(), q.record())
	switch {
	case reverts > RevertRetries:
		return Reverted
	case q.lacksRequired() && q.hadRequired():
		return KeyMissing
	case q.lacksRequired():
		return KeyAwaited
	case reverts == 0 && q.isBeforeOptIn():
		return BeforeOptIn
	case reverts > 0:
		return Changed // The template is the one from before the roll, and perhaps so are the pods.
	case q.isTemplateNewer() && q.w.IsReplacingPods():
		return PodsStarting
	case q.isTemplateNewer() || q.isBornAfter():
		return PodsNewer
	case cameBack:
		return Changed // Pods that started meanwhile may have read the other content.
	}
	return q.byCreation()
}

// hasContent returns the reason why the pods have the content already, or None if that is not known.
func (q *question) hasContent() Reason {
	changedAt := q.seen.changedAt
	if !q.recorded {
		switch from := q.memory.From; {
		case q.hasDropped(changedAt):
			return AlreadyRolled
		case from != nil && viewOf(*from, q.want).fingerprint == q.seen.fingerprint:
			return ChangedBack
		}
		return None
	}
	// The resourceVersions of another object of the name may come from another cluster, as after a restore from a backup.
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
