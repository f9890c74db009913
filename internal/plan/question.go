package plan

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// clockMargin is how far apart two writes must be to know which came first: times are precise to a second, and each API server has its clock.
const clockMargin = 10 * time.Second

// Creation says which workloads roll when a source is created. It is the value of --roll-on-create.
type Creation string

// The values.
const (
	// CreateAuto rolls the workloads whose pods started without the source.
	CreateAuto Creation = "auto"
	// CreateAlways rolls all workloads, once for each object of the name, except those whose pods waited for it.
	CreateAlways Creation = "always"
	// CreateNever rolls none.
	CreateNever Creation = "never"
)

// Creations lists the values.
func Creations() []Creation { return []Creation{CreateAuto, CreateAlways, CreateNever} }

// Policy holds the choices of whoever operates the installation. The zero value means CreateAuto, and no roll when a source is deleted.
type Policy struct {
	Create Creation
	// Delete rolls workloads when a source is deleted that their pods can start without, once for each object.
	Delete bool
}

// question is a change of a source and a workload that wants it.
type question struct {
	w    *workload.Workload
	ref  *workload.Reference
	want workload.Want
	now  events.Change
	// memory is what the leader remembers, and policy is that of the installation.
	memory Memory
	policy Policy
	// seen is what the pods read of the source.
	seen view
	// last is the workload's record for the source: what it was last rolled for. recorded says that there is one.
	last     workload.RolledFor
	recorded bool
	// distrusted says that the record has an impossible version for the source, and that last has none instead.
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

// isNoted reports whether the record has nothing about the source but that the workload is to be rolled for it.
func (q *question) isNoted() bool { return q.recorded && q.last.IsOwed() }

// isOfEarlierObject reports whether the record is certainly about a later object of this name, as after a restore of the stream. The record must be
// of this cluster for that, whose resourceVersions are compared: then the workload was created before it was recorded.
func (q *question) isOfEarlierObject() bool {
	isObject := q.now.Source.Kind != events.KindOpenBao && q.recorded && q.last.UID != q.now.UID
	return isObject && events.Newer(q.last.Version, q.now.ResourceVersion) && events.Newer(q.w.Version, q.last.Version) &&
		q.w.Patched.After(q.w.Created)
}

// isNoteOver reports whether the workload was to be rolled for keys that do not count any more: what it is noted for covers others than those that
// count now, and of these none is known to have changed.
func (q *question) isNoteOver() bool {
	return len(q.seen.uncounted) > 0 && q.now.ChangedAt != "" && q.last.Scope != q.seen.scope && !q.last.OwesDeletion()
}

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

// lacksRequired reports whether the source lacks a key without which new pods could not start. A key that is not listed may be there if its bucket
// has keys, or if the event says nothing of single keys.
func (q *question) lacksRequired() bool {
	isMissing := func(name string) bool {
		key, _ := q.now.Key(name)
		return key.Fingerprint == ""
	}
	return q.ref != nil && slices.ContainsFunc(q.ref.Required, isMissing)
}

// isDeletion reports whether the source was deleted while the workload wanted it, and the policy rolls workloads for that. Secrets in a store do not
// count: they keep the same identity after a deletion, so one deletion could not be told from the next.
func (q *question) isDeletion() bool {
	return q.now.Verb == events.VerbDeleted && q.policy.Delete && q.now.Source.Kind != events.KindOpenBao &&
		(q.last.OwesDeletion() || q.isNews(q.now.ResourceVersion))
}
