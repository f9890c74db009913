package workload

import (
	"crypto/sha256"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Workload is an immutable snapshot of a workload: a later state is another Workload.
type Workload struct {
	ID      events.Workload
	Version string
	Created time.Time
	OptIn   OptIn
	// Problems are the annotations, or items of them, that are not valid.
	Problems []error
	// Refs are what its pods read.
	Refs []Reference
	// Rolled is what it was last rolled for, by source.
	Rolled map[string]RolledFor
	// Wave orders workloads: for one change, those of a lower wave are rolled first.
	Wave int
	// Revision is that of the last roll, empty if there was none.
	Revision   string
	Generation int64
	Progress   Progress
	// Reverted counts the rolls that someone else took back, by source.
	Reverted map[string]Reverted
	// Patched is the time of the actuator's newest write by the API server's clock, to the second. Zero: it is not known.
	Patched time.Time
	// Manager is the field manager of the last write by someone else that managedFields has, empty if there is none. It has no write that only
	// removes fields, unless that manager has others.
	Manager string
	// ManagerIsLast says that this write is not older than the actuator's own last one.
	ManagerIsLast bool

	// kept is what could not be written on it. Nil: nothing. Starts is that of parts.
	kept   *kept
	starts bool

	// Suspended says that someone has suspended a workload whose pods are started at a roll: they read what there is once it is resumed.
	Suspended bool

	// Deaf says that nobody rolls it, whatever its annotations ask for: OptIn is empty.
	Deaf bool

	// Aborted says that the rollout of the pod template was aborted, by a person or an analysis, which a roll would override.
	Aborted bool

	// StandsFor is the workload that is being recreated and whose manifest this one keeps. Zero: it is an ordinary one.
	StandsFor Key

	// Runs is the workload that is rolled instead of this one: the one of whose pod template it, which has none, runs the pods, or its
	// Owner. Zero: it is rolled itself.
	Runs Key
	// Owner is its controller, if that is of a kind that is rolled instead. Zero: it is not.
	Owner Key

	// owned says that it Runs another because that is its controller: what its own pods read counts for that one, too.
	owned bool
	// target is that of parts.
	target *targetParts

	// lent is what the annotations of a workload that Runs another say, which count for that one. Observes is the generation of the other that
	// its controller has observed.
	lent     OptIn
	observes int64
	// restarts, restartAt, touched and unaborted are those of parts.
	restarts  bool
	restartAt string
	touched   time.Time
	unaborted []operation
	// alone is the workload as it would be if no other ran the pods of its template, and asked is when the annotations of the other were
	// written at the latest. Nil: none does.
	alone *Workload
	asked time.Time

	// Pause is how long changes are gathered after a roll. It is the zero value without Reading.Reloader.
	Pause Pause
	// pausedAtKey is the key of the annotation that says when a pause began. Empty: none is written.
	pausedAtKey string

	// InPlace is how its pods are asked to reload instead of being replaced. Nil: they are replaced.
	InPlace *InPlace

	// Hold is why it is on hold, in one line. Empty: it is not.
	Hold     string
	now      rollNow
	opening  opening
	interval interval
	breaker  breaker
	bakes    bake

	stored   stored
	template [sha256.Size]byte
	// bare is the digest of the template without Keyturn's annotations.
	bare [sha256.Size]byte
	// templates are the templates that it had earlier, the newest last.
	templates []pastTemplate
	// recordRevision is the revision that a roll with its record has.
	recordRevision string
	// TemplateVersion is the resourceVersion of the write that last changed the pod template, empty if it is not known.
	TemplateVersion string
	// TemplateWritten is the time of that write by the API server's clock, to the second. Zero: it is not known.
	TemplateWritten time.Time
	// links are since when it wants sources the way it does, of those that it did not want so when it was first seen.
	links map[events.Source]Link
	// Written is the time of the newest write by the API server's clock, to the second, but for those of subresources such as the status.
	// Zero: it is not known.
	Written time.Time
	// Reloaded is the time of Reloader's newest write by the API server's clock, to the second. Zero: it is not known, or Reading.Reloader is
	// false.
	Reloaded time.Time
	// ServingSince is a resourceVersion at which the workload had pods of this template that were available, and no others, as it has had in
	// every state seen since. Empty: it has none now.
	ServingSince string
}

// Key is the identity of a workload in a cluster at one time. Its successor of the same name has the same Key.
type Key struct {
	Kind, Namespace, Name string
}

// KeyOf returns the key of the workload that an outcome names.
func KeyOf(id events.Workload) Key { return Key{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name} }

// Key returns the key of the workload.
func (w *Workload) Key() Key { return KeyOf(w.ID) }

// RunsOnce reports whether a roll of the workload is a run of its own: of a Job, or of a CronJob that has one started. Pods that it has already are
// as old as itself.
func (w *Workload) RunsOnce() bool { return w.starts || w.ID.Kind == jobs.Name }

// Reference returns the pod spec's reference to a source, nil if there is none.
func (w *Workload) Reference(source events.Source) *Reference {
	for i := range w.Refs {
		if ref := &w.Refs[i]; RefersTo(ref.Kind, ref.Name, source) && SourceNamed(ref.Kind, w.ID.Namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// Sources lists the sources that may concern the workload by name: those that it references and those that it names.
func (w *Workload) Sources() []events.Source {
	list := w.OptIn.names(w.ID.Namespace)
	for _, ref := range w.Refs {
		list = append(list, SourceNamed(ref.Kind, w.ID.Namespace, ref.Name))
	}
	return list
}
