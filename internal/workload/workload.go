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
	// Problems has an error for each invalid annotation or item.
	Problems []error
	// Refs are what the pods read.
	Refs []Reference
	// Rolled is the record: what the workload was last rolled for, by source. While the annotation is not as the actuator wrote it, this is
	// what the actuator wrote last, as far as that is known.
	Rolled map[string]RolledFor
	// Wave orders workloads: for one change, those with a lower wave are rolled first.
	Wave int
	// Revision is the revision of the last roll, or empty if there was none.
	Revision   string
	Generation int64
	Progress   Progress
	// Reverted counts the rolls that someone else undid, by source.
	Reverted map[string]Reverted
	// Last is the mark of the last roll. It is zero if there is none, or if someone else has written it.
	Last Last
	// UndoneBy is the field manager of a person who has put back what an earlier roll wrote, or empty if nobody has since the last roll.
	UndoneBy string
	// Patched is the time of the actuator's newest write by the API server's clock, to the second. It is zero if not known.
	Patched time.Time
	// Edited is the time of the newest write by someone else by the API server's clock, to the second, except to subresources such as the
	// status. It is zero if not known.
	Edited time.Time
	// Manager is the field manager of the last write by someone else in managedFields, or empty if there is none. managedFields does not show
	// a manager that has only removed fields.
	Manager string
	// ManagerIsLast says that the write by Manager is not older than the actuator's own last one.
	ManagerIsLast bool

	// ours says that the annotation of the record is as the actuator wrote it.
	ours bool
	// kept is what could not be written on the workload, or nil. starts is as in parts.
	kept   *kept
	starts bool

	// Unserved says that the API server does not serve the kind of the workload, or of one that runs its pods: nobody knows what has become of it.
	Unserved bool

	// Suspended says that someone has suspended a workload whose rolls start pods. When it is resumed, its pods read what is current then.
	Suspended bool

	// Deaf says that the workload is not rolled whatever its annotations ask for: OptIn is empty.
	Deaf bool

	// Aborted says that the rollout of the pod template was aborted, by a person or an analysis. A roll would override that.
	Aborted bool

	// StandsFor is the workload that is being recreated and whose manifest this one keeps. It is zero for an ordinary workload.
	StandsFor Key

	// Runs is the workload that is rolled instead of this one: either the one whose pod template this one's pods have, because this
	// one has no template, or its Owner. It is zero if this one is rolled itself.
	Runs Key
	// Owner is the workload's controller, if that is of a kind that is rolled instead. It is zero otherwise.
	Owner Key

	// owned says that Runs is set because the other workload is the controller. What this one's pods read then counts for the controller, too.
	owned bool
	// target is as in parts.
	target *targetParts

	// lent is the opt-in of a workload that Runs another one, for which it counts instead. observes is the generation of the other one
	// that this one's controller has observed.
	lent     OptIn
	observes int64
	// restarts, restartAt, touched and unaborted are as in parts.
	restarts  bool
	restartAt string
	touched   time.Time
	unaborted []operation
	// alone is the workload as it would be if no other ran the pods of its template, and asked is a time by which the annotations of the
	// others were written. alone is nil if no other does.
	alone *Workload
	asked time.Time

	// Pause is how long changes are gathered before they roll the workload. It is the zero value without Reading.Reloader.
	Pause Pause
	// pausedAtKey is the key of the annotation that says when a pause began. If it is empty, none is written.
	pausedAtKey string

	// InPlace is how the pods are asked to reload instead of being replaced. It is nil if they are replaced.
	InPlace *InPlace

	// Hold is why the workload is on hold, in one line. It is empty if it is not on hold.
	Hold     string
	now      rollNow
	opening  opening
	interval interval
	breaker  breaker
	bakes    bake

	stored   stored
	template [sha256.Size]byte
	// bare is the digest of the template without what rolls write on it.
	bare [sha256.Size]byte
	// templates are the earlier pod templates of the workload, the newest last.
	templates []pastTemplate
	// TemplateVersion is the resourceVersion of the write that last changed the pod template, or empty if not known.
	TemplateVersion string
	// TemplateWritten is the time of that write by the API server's clock, to the second. It is zero if not known.
	TemplateWritten time.Time
	// links are the last writes that changed what the workload wants, the newest last.
	links []linking
	// Written is the time of the newest write by the API server's clock, to the second, except to subresources such as the status. It is
	// zero if not known.
	Written time.Time
	// Reloaded is the time of Reloader's newest write by the API server's clock, to the second. It is zero if not known, or if
	// Reading.Reloader is false.
	Reloaded time.Time
	// ServingSince is a resourceVersion at which the workload had available pods of this template and no pods of others, and since which
	// this has been so in every state seen. It is empty if it is not so now.
	ServingSince string
}

// Key identifies a workload in a cluster at one time. A later workload of the same kind and name has the same Key.
type Key struct {
	Kind, Namespace, Name string
}

// KeyOf returns the key of the workload that an outcome names.
func KeyOf(id events.Workload) Key { return Key{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name} }

// Key returns the key of the workload.
func (w *Workload) Key() Key { return KeyOf(w.ID) }

// RunsOnce reports whether each roll of the workload is a separate run: of a Job, or of a CronJob whose rolls start a Job. Pods that it
// already has are as old as the workload itself.
func (w *Workload) RunsOnce() bool { return w.starts || w.ID.Kind == jobs.Name }

// Reference returns the pod spec's reference to a source, or nil if there is none.
func (w *Workload) Reference(source events.Source) *Reference {
	return referenceTo(source, w.Refs, w.ID.Namespace)
}

// Sources returns the sources that may concern the workload by name: those that it references and those that its annotations name.
func (w *Workload) Sources() []events.Source {
	list := w.OptIn.names(w.ID.Namespace)
	for _, ref := range w.Refs {
		list = append(list, SourceNamed(ref.Kind, w.ID.Namespace, ref.Name))
	}
	return list
}
