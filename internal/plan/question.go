package plan

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// clockMargin is the time between two writes that makes their order certain: times are in whole seconds, and API servers have different clocks.
const clockMargin = 10 * time.Second

// Creation says which workloads roll when a source is created. It is the value of --roll-on-create.
type Creation string

// These are the values of Creation.
const (
	// CreateAuto rolls the workloads whose pods started without the source.
	CreateAuto Creation = "auto"
	// CreateAlways rolls all workloads, once for each object of the name, except those whose pods waited for the source.
	CreateAlways Creation = "always"
	// CreateNever rolls no workloads.
	CreateNever Creation = "never"
)

// Creations lists the values.
func Creations() []Creation { return []Creation{CreateAuto, CreateAlways, CreateNever} }

// Policy contains the operator's choices. The zero value means CreateAuto, and no roll when a source is deleted.
type Policy struct {
	Create Creation
	// Delete rolls workloads when a source is deleted that they can start without, once for each object.
	Delete bool
}

// question is a change of a source and a workload that wants it.
type question struct {
	w    *workload.Workload
	ref  *workload.Reference
	want workload.Want
	now  events.Change
	// memory is what the leader remembers, and policy belongs to the installation.
	memory Memory
	policy Policy
	// seen is the part of the source that the pods read.
	seen view
	// last is the workload's record of the last roll for the source. recorded says that it exists.
	last     workload.RolledFor
	recorded bool
	// distrusted says that the recorded version of the source is impossible and was dropped from last.
	distrusted bool
}

// record returns the entry to record once the pods have the content of the event.
func (q *question) record() workload.RolledFor {
	record := workload.RolledFor{Fingerprint: q.seen.fingerprint, Version: q.seen.changedAt, UID: q.now.UID, Scope: q.seen.scope}
	if q.isDeletion() {
		return workload.DeletedAfter(record)
	}
	return record
}

// differs reports whether the record is known to have other content than the source.
func (q *question) differs() bool {
	return q.recorded && !q.seen.isRebased && q.last.Differs(q.record())
}

// isNoted reports whether the record contains only the note that the workload is to be rolled for the source.
func (q *question) isNoted() bool { return q.recorded && q.last.IsOwed() }

// isOfEarlierObject reports whether the record is certainly about a later object of this name, as after a restore of the stream. To compare
// resourceVersions, the record must be from this cluster: the workload was created before its record was written.
func (q *question) isOfEarlierObject() bool {
	isObject := q.now.Source.Kind != events.KindOpenBao && q.recorded && q.last.UID != q.now.UID
	return isObject && events.Newer(q.last.Version, q.now.ResourceVersion) && events.Newer(q.w.Version, q.last.Version) &&
		q.w.Patched.After(q.w.Created)
}

// isNoteOver reports whether the workload was to be rolled only for keys that no longer count: the note covers other keys than those that count now,
// and none of these is known to have changed.
func (q *question) isNoteOver() bool {
	return len(q.seen.uncounted) > 0 && q.now.ChangedAt != "" && q.last.Scope != q.seen.scope && !q.last.OwesDeletion()
}

// startedWithout reports whether pods may have started before the source was created. If the source existed when the cluster was first watched, they
// may have if nobody else has written the workload since, as its template is then older than the source. The actuator's own writes do not count.
func (q *question) startedWithout() bool {
	return q.now.Since.IsZero() || q.w.Created.Before(q.now.Since) && q.w.Edited.Before(q.now.Since)
}

// waited reports whether the pods could not start before the source appeared. Pods that served by then have read an earlier source of this name.
func (q *question) waited() bool {
	served := q.now.Source.Kind != events.KindOpenBao && events.Newer(q.now.CreatedAt, q.w.ServingSince)
	return needs(q.ref) && !served
}

// hasReadIt reports whether the source is back with unchanged content that the pods, which need it, have read before or after its absence.
func (q *question) hasReadIt() bool {
	isBack := q.now.Verb == events.VerbObserved || q.now.Created
	return needs(q.ref) && isBack && q.now.Previous != ""
}

// needs reports whether the pods cannot start without the source, and so have read its content from its creation.
func needs(ref *workload.Reference) bool { return ref != nil && !ref.Optional && !ref.ByPull }

// lacksRequired reports whether the source lacks a key that new pods need to start. An unlisted key may exist if its bucket has keys, or if the event
// lists no single keys.
func (q *question) lacksRequired() bool {
	isMissing := func(name string) bool {
		key, _ := q.now.Key(name)
		return key.Fingerprint == ""
	}
	return q.ref != nil && slices.ContainsFunc(q.ref.Required, isMissing)
}

// isDeletion reports whether the source was deleted while the workload wanted it, and the policy rolls workloads for that. Secrets in a store keep
// their identity after a deletion, so two deletions could not be told apart, and they do not count.
func (q *question) isDeletion() bool {
	return q.now.Verb == events.VerbDeleted && q.policy.Delete && q.now.Source.Kind != events.KindOpenBao &&
		(q.last.OwesDeletion() || q.isNews(q.now.ResourceVersion))
}
