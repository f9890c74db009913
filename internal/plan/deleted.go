package plan

import "github.com/keyturn/keyturn/internal/events"

// isDeletion reports whether the source was deleted and the policy has that roll. What is deleted in a store keeps the same identity, so that
// one deletion could not be told from the next.
func (q *question) isDeletion() bool {
	return q.now.Verb == events.VerbDeleted && q.policy.Delete && q.now.Source.Kind != events.KindOpenBao
}

// byDeletion decides about a source that was deleted.
func (q *question) byDeletion() Reason {
	reverts := q.w.Reverts(q.now.Source.String(), q.record())
	switch {
	case !q.isDeletion():
		return SourceDeleted
	case q.recorded && q.last.IsDeleted():
		return AlreadyRolled // Even if it is another object that has come and gone since: the pods have nothing of it.
	case needs(q.ref):
		return SourceNeeded
	case reverts > RevertRetries:
		return Reverted
	case reverts == 0 && q.isMadeAfter() && q.w.IsReplacingPods():
		return PodsStarting
	case reverts == 0 && q.isMadeAfter():
		return PodsNewer
	}
	return Deleted
}

// isMadeAfter reports whether the workload, or its pod template, was certainly written after the watcher saw that the source was gone. The
// event has no resourceVersion of the deletion.
func (q *question) isMadeAfter() bool {
	made := q.w.Created
	if q.w.TemplateWritten.After(made) {
		made = q.w.TemplateWritten
	}
	return !q.now.Time.IsZero() && made.After(q.now.Time.Add(clockMargin))
}

// isBack reports whether the source is there again after the workload was rolled without it: whatever it has, the pods do not have it.
func (q *question) isBack() bool {
	return q.recorded && q.last.IsDeleted() && q.now.Verb != events.VerbDeleted
}
