package workload

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Workload is an immutable snapshot of a workload: a later state is another Workload. Each of its parts is embedded.
type Workload struct {
	object
	// Problems has an error for each invalid annotation or item.
	Problems []error

	wishes
	// Wave orders workloads: for one change, those with a lower wave are rolled first.
	Wave int
	// InPlace is how the pods are asked to reload instead of being replaced. It is nil if they are replaced.
	InPlace *InPlace
	// links are the last writes that changed what the workload wants, the newest last.
	links []linking
	runners

	timing

	record
	// Reverted counts the rolls that someone else undid, by source: see annotationReverted.
	Reverted map[string]RolledFor
	// ours says that the annotation of the record is as the actuator wrote it.
	ours bool
	// unwritten is what could not be written on the workload, or nil.
	unwritten *unwritten
	stored    stored
	// parsed is that of the object, for the next state. It is nil for kinds that do not count their changes.
	parsed *parsed

	rolloutState
	kindState
	reloaderState
}

// object is what is known of the object itself. All times of writes are by the API server's clock, to the second. They are zero if not known.
type object struct {
	ID         events.Workload
	Version    string
	Created    time.Time
	Generation int64
	// Patched is the time of the actuator's newest write.
	Patched time.Time
	// Edited is the time of the newest write by someone else, and Written that by anyone, except to subresources such as the status.
	Edited, Written time.Time
	// Manager is the field manager of the last write by someone else, or empty. managedFields does not show one that has only removed fields.
	Manager string
	// ManagerIsLast says that the write by Manager is not older than the actuator's own last one.
	ManagerIsLast bool
	// UndoneBy is the field manager of a person who has put back what an earlier roll wrote, or empty if nobody has since the last roll.
	UndoneBy string
	// Unserved says that the API server does not serve the kind of the workload, or of one that runs its pods: its state is unknown.
	Unserved bool
}

// record is what the rolls of a workload have written on it.
type record struct {
	// Rolled is what the workload was last rolled for, by source. While others have written the annotation, it is what the actuator wrote last.
	Rolled map[string]RolledFor
	// Revision is the revision of the last roll, or empty if there was none.
	Revision string
	// Last is the mark of the last roll. It is zero if there is none, or if someone else has written it.
	Last Last
	// rolledNow is what the last roll recorded of AnnotationRollNow: the value, or several as JSON.
	rolledNow string
	// rolledAt is when the workload was last rolled. It is zero if not known.
	rolledAt time.Time
	rolls    rolls
}

// rolloutState is how far the pod template has got.
type rolloutState struct {
	Progress Progress
	// template is the digest of the pod template, and bare that of the template without what rolls write on it.
	template, bare digest
	// completed is the revision of the last roll whose rollout is known to have been complete. It is empty if there is none.
	completed string
	// templates are the earlier pod templates of the workload, the newest last.
	templates []pastTemplate
	// TemplateVersion is the resourceVersion of the write that last changed the pod template, or empty if not known.
	TemplateVersion string
	// TemplateWritten is the time of that write by the API server's clock, to the second. It is zero if not known.
	TemplateWritten time.Time
	// ServingSince is a resourceVersion since which the workload has had available pods of this template and no others in every state seen. It is
	// empty if it is not so now.
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

// problem notes that an annotation of the workload is invalid. Item is empty if the whole annotation is.
func (w *Workload) problem(annotation, item, problem string) {
	w.Problems = append(w.Problems, &itemError{annotation: annotation, item: item, problem: problem})
}
