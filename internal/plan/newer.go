package plan

import (
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// writtenBy returns an upper bound of the time of the change, or zero if unknown. The newest write is never before the change.
func (q *question) writtenBy() time.Time {
	at := q.now.WrittenAt
	if since := q.currentSince(); !at.IsZero() && since.After(at) {
		return since
	}
	return at
}

// currentSince returns since when a store has had the content that the pods read, or zero for other sources. After a restore of the store or an
// undeletion, that is later than when the version was written. The resourceVersion of a secret in a store is this time.
func (q *question) currentSince() time.Time {
	nanoseconds, err := strconv.ParseInt(q.seen.changedAt, 10, 64)
	if err != nil || q.now.Source.Kind != events.KindOpenBao {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

// isBornAfter reports whether the workload was certainly created after the change.
func (q *question) isBornAfter() bool {
	at, margin := q.writtenBy(), clockMargin
	if q.w.TemplateVersion == "" && q.w.RunsOnce() {
		margin = 0 // There may be nothing else to compare, and an extra run would be worse than a clock difference.
	}
	return !at.IsZero() && q.w.Created.After(at.Add(margin))
}

// isTemplateNewer reports whether the pod template, or a restart by Reloader, is newer than the content that the pods read.
func (q *question) isTemplateNewer() bool {
	if q.w.TemplateVersion == "" {
		return q.isReloaded()
	}
	if q.w.Restarts() && q.isReloaded() {
		return true // A restart replaces the pods and leaves the template as it is.
	}
	return events.Newer(q.w.TemplateVersion, q.seen.changedAt) && !q.isContradicted()
}

// isReloaded reports whether Reloader has rolled the workload after the change, by its field manager. It usually does so within the same second, and
// times are in whole seconds, so a roll in that second counts unless it was for another source.
func (q *question) isReloaded() bool {
	at := q.writtenBy()
	if at.IsZero() || q.w.Reloaded.Before(at) {
		return false
	}
	return q.w.Reloaded.After(at) || q.w.MayBeReloadedFor(q.now.Source)
}

// isContradicted reports whether times contradict resourceVersions, as they may if workloads and sources are in two etcds. Then no versions compare.
func (q *question) isContradicted() bool {
	return events.Newer(q.w.TemplateVersion, q.seen.changedAt) && q.seen.changedAt == q.now.ResourceVersion &&
		!q.w.TemplateWritten.IsZero() && q.w.TemplateWritten.Add(clockMargin).Before(q.now.WrittenAt)
}
