package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Decide returns what the last event of a source means to a workload:
//
//	w       the workload as last seen
//	now     the last event of the source; without a verb if nothing is known of the source, which is not the same as that it is gone
//	memory  what the leader remembers of the two
//
// It compares two states, and may be called at any time: a workload that got what Decide asks for is left as it is by the next call, and by another
// leader.
func Decide(w *workload.Workload, now events.Change, memory Memory, policy Policy) Decision {
	isKnown := now.Verb != ""
	if !isKnown {
		now = Forgotten(w, now.Source)
	}
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	decision := Decision{Source: now.Source, Want: want}
	if !want.Wanted() {
		decision.Reason = unwanted[want.Reason]
		return decision
	}
	q := &question{w: w, ref: ref, keys: want.Keys, now: now, memory: memory, policy: policy, seen: viewOf(now, want.Keys)}
	q.last, q.recorded = w.Rolled[now.Source.String()]
	q.date()
	if !isKnown && !q.last.OwesDeletion() {
		decision.Reason = Unknown
		return decision
	}
	why := q.answer(&decision)
	decision.Record.Version = cmp.Or(decision.Record.Version, workload.NoVersion)
	decision.Records = decision.Reason.Action() == Record || q.isToRecord(why)
	decision.Unnoted = decision.Owes() && !q.isShown(why)
	return decision
}

// isToRecord reports whether the record takes up what the source has, although there is nothing to do for it: what the pods are known to have, what
// they are not rolled for, and what an ignored source has. Otherwise a later event would be compared with something else.
func (q *question) isToRecord(why Reason) bool {
	switch why {
	case BeforeOptIn:
	case SourceIgnored:
		if q.now.Verb == events.VerbDeleted {
			return false
		}
	case FirstSeen, KeysNotConsumed, SameContent:
		if q.recorded && q.last.Fingerprint != q.seen.fingerprint {
			return false // They are of different keys, and cannot be compared.
		}
	default:
		return false
	}
	return !q.lacksRequired() && q.isRecordBehind()
}

// isRecordBehind reports whether the record is not about the last change of the source.
func (q *question) isRecordBehind() bool {
	now := q.record()
	switch {
	case !q.recorded:
		return !q.w.HasDropped(q.now.Source, now.Version)
	case q.last.UID != now.UID:
		return !q.isOfEarlierObject()
	}
	return q.isNoted() || events.Newer(now.Version, q.last.Version)
}

// isShown reports whether the workload itself shows that it is to be rolled for a reason, so that another leader knows.
func (q *question) isShown(why Reason) bool {
	switch {
	case why == Deleted:
		return q.last.OwesDeletion()
	case q.isRecreated():
		return q.isNoted()
	}
	return q.isNoted() || q.recorded && !q.isLinked() // The source differs from that, and the workload wanted it already.
}

// Decision is what one workload needs because of one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is what the workload's annotations say about the source.
	Want workload.Want
	// Keys are the keys that the event changed and that the pods read.
	Keys []string
	// Record is what the workload's record says about the source afterwards; with Skip, what it would say.
	Record workload.RolledFor
	// Anew says that the source may be a different object from the one that the pods have read, or was created by the change.
	Anew bool
	// Hold is why the source is on hold. It is set with SourceOnHold.
	Hold string
	// Records says that the record is to take up Record with the next patch, or alone once the workload has nothing else to do. Unnoted says that the
	// workload is to be rolled, and that nothing on it shows that. Only Decide sets them.
	Records, Unnoted bool
	// Contradicted says that the resourceVersions of the workload and the source are not comparable, and were not compared.
	Contradicted bool
}

// Owes reports whether the workload is to be rolled for the source, now or once what holds that is over.
func (d Decision) Owes() bool {
	return d.Reason.Action() == Roll || d.Reason == SourceOnHold || d.Reason == Aborted
}

// Note returns what a patch writes on a workload that is not rolled now: all that the record lacks, or that others have overwritten. It returns false
// if that is nothing. The decisions are about sources that the workload wants; waits says that it has to wait with what it is to be rolled for.
func Note(w *workload.Workload, decisions []Decision, waits bool) (workload.Write, bool) {
	entries := make(map[string]workload.RolledFor)
	for _, decision := range decisions {
		switch source := decision.Source.String(); {
		case decision.Records:
			entries[source] = decision.Record
		case decision.Unnoted && waits:
			entries[source] = workload.Owed(decision.Record)
		}
	}
	return workload.Write{Rolled: entries}, len(w.Notable(entries)) > 0 || w.IsRecordLost()
}

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

// view is what the pods of a workload read of a source.
type view struct {
	// fingerprint is the fingerprint of everything that they read.
	fingerprint string
	// scope says what the fingerprint covers, see workload.RolledFor.
	scope string
	// changedAt is the resourceVersion at which any of it last changed, or empty if nothing has changed since the source was first seen.
	changedAt string
	// changed are the keys they read that the event itself changed.
	changed []string
}

// viewOf returns what pods read of a source that read the given keys: all of it if keys is nil, or if the event does not list keys.
func viewOf(change events.Change, keys []string) view {
	if keys == nil || change.Truncated {
		return view{fingerprint: change.Fingerprint, scope: workload.ScopeOf(nil), changedAt: change.ChangedAt, changed: change.Changed}
	}
	seen := view{scope: workload.ScopeOf(keys)}
	digest := sha256.New()
	for _, name := range keys {
		key := change.Keys[name]
		if key.ChangedAt != "" && (seen.changedAt == "" || events.Newer(key.ChangedAt, seen.changedAt)) {
			seen.changedAt = key.ChangedAt
		}
		if key.ChangedAt == change.ResourceVersion {
			seen.changed = append(seen.changed, name)
		}
		for _, part := range []string{name, key.Fingerprint} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			digest.Write(length[:])
			digest.Write([]byte(part))
		}
	}
	// The input of the digest is already keyed, so the digest is a fingerprint under the same key.
	keyID, _, _ := strings.Cut(change.Fingerprint, ":")
	seen.fingerprint = keyID + ":" + hex.EncodeToString(digest.Sum(nil)[:16])
	return seen
}
