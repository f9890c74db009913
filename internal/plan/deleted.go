package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// isDeletion reports whether the source was deleted while the workload wanted it, and the policy rolls workloads for that. Secrets in a store do not
// count: they keep the same identity after a deletion, so one deletion could not be told from the next.
func (q *question) isDeletion() bool {
	return q.now.Verb == events.VerbDeleted && q.policy.Delete && q.now.Source.Kind != events.KindOpenBao &&
		(q.last.OwesDeletion() || q.isNews(q.now.ResourceVersion))
}

// Forgotten returns the deletion of a source that nothing is known of: the stream forgets a deletion after a day, and the workload may have noted it.
func Forgotten(w *workload.Workload, source events.Source) events.Change {
	noted := w.Rolled[source.String()]
	return events.Change{
		Source: source, Verb: events.VerbDeleted, UID: noted.UID, ResourceVersion: noted.Version, Fingerprint: noted.Fingerprint,
		Match: true,      // as far as anybody knows
		Time:  w.Patched, // It was noted then, or earlier.
	}
}

// byDeletion decides about a source that was deleted.
func (q *question) byDeletion() Reason {
	reverts := q.w.Reverts(q.now.Source.String(), q.record())
	switch {
	case !q.isDeletion():
		return SourceDeleted
	case q.recorded && q.last.IsDeleted():
		return AlreadyRolled // Even if another object was created and deleted since: the pods have nothing from it.
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

// isMadeAfter reports whether the workload, or its pod template, was certainly written after the watcher saw that the source was gone. It compares
// times, because the event does not have the resourceVersion of the deletion.
func (q *question) isMadeAfter() bool {
	made := q.w.Created
	if q.w.TemplateWritten.After(made) {
		made = q.w.TemplateWritten
	}
	return !q.now.Time.IsZero() && made.After(q.now.Time.Add(clockMargin))
}

// isBack reports whether the source exists again after the workload was rolled without it. The pods then have none of its content.
func (q *question) isBack() bool {
	return q.recorded && q.last.IsDeleted() && q.now.Verb != events.VerbDeleted
}
