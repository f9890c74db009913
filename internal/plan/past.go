package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Past is what is known of the time before an event. The zero value knows nothing.
type Past struct {
	// From is the content before the first change that is not decided yet. Nil: it is not known.
	From *events.Change
	// Written has, by the resourceVersion of a change, a time before which it was written. Nil: nobody has asked.
	Written map[string]time.Time
	// Waited says that the change has waited for so long that pods may have started since, with content that has come and gone.
	Waited bool
}

// isDated reports whether it is known when the change was written that the pods are to be compared with.
func (q *question) isDated() bool {
	return q.past.Written != nil || q.seen.changedAt == q.now.ResourceVersion || q.now.Source.Kind == events.KindOpenBao
}

// writtenBy returns a time by which the change was written, zero if none is known. The newest write is never before it.
func (q *question) writtenBy() time.Time {
	at := q.now.WrittenAt
	if earlier, known := q.past.Written[q.seen.changedAt]; known && (at.IsZero() || earlier.Before(at)) {
		at = earlier
	}
	return at
}

// isBornAfter reports whether the workload was certainly created after the change.
func (q *question) isBornAfter() bool {
	at, margin := q.writtenBy(), clockMargin
	if q.w.TemplateVersion == "" && q.w.RunsOnce() {
		margin = 0 // Nothing else may be known of it, and one run too many is worse here than clocks that differ.
	}
	return !at.IsZero() && q.w.Created.After(at.Add(margin))
}

// isTemplateNewer reports whether the pod template was changed after what the pods read, as their resourceVersions say.
func (q *question) isTemplateNewer() bool {
	if q.w.TemplateVersion == "" {
		return q.isReloaded()
	}
	return workload.Newer(q.w.TemplateVersion, q.seen.changedAt) && !q.isContradicted()
}

// isReloaded reports whether Reloader has rolled the workload after the change, judging by its field manager. That is all that is known of a
// template that was not seen being written. The times are known to the second, in which Reloader usually rolls: a roll of that second is after
// the change, unless it was for another source.
func (q *question) isReloaded() bool {
	at := q.writtenBy()
	if at.IsZero() || q.w.Reloaded.Before(at) {
		return false
	}
	return q.w.Reloaded.After(at) || q.w.MayBeReloadedFor(q.now.Source)
}

// isContradicted reports whether the times of the two writes contradict their resourceVersions, as they may where workloads and sources are
// not in one etcd. Then the versions say nothing.
func (q *question) isContradicted() bool {
	return workload.Newer(q.w.TemplateVersion, q.seen.changedAt) && q.seen.changedAt == q.now.ResourceVersion &&
		!q.w.TemplateWritten.IsZero() && q.w.TemplateWritten.Add(clockMargin).Before(q.now.WrittenAt)
}
