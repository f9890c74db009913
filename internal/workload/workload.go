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
	// Wave orders workloads: for one change, lower waves are rolled first.
	Wave int
	// InPlace describes how the pods are asked to reload instead of being replaced. It is nil if they are replaced.
	InPlace *InPlace
	// links are the last writes that changed what the workload wants, the newest last.
	links []linking
	runners

	timing

	record
	// Reverted counts the rolls that other clients reverted, by source: see annotationReverted.
	Reverted map[string]RolledFor
	// ours says that the record's annotation has the value that the actuator wrote.
	ours bool
	// unwritten is a record that could not be written on the workload, or nil.
	unwritten *unwritten
	stored    stored
	// parsed is the parsed part of the object, for the next state. It is nil for kinds that do not count their changes.
	parsed *parsed

	rolloutState
	kindState
	reloaderState
}

// object contains the data of the object itself. All write times are by the API server's clock, in whole seconds. They are zero if unknown.
type object struct {
	ID         events.Workload
	Version    string
	Created    time.Time
	Generation int64
	// Patched is the time of the actuator's newest write.
	Patched time.Time
	// Edited is the time of the newest write by another client, and Written that by anyone. Writes to subresources such as the status do not count.
	Edited, Written time.Time
	// Manager is the field manager of the last write by another client, or empty. managedFields do not show writes that only removed fields.
	Manager string
	// ManagerIsLast says that the write by Manager is not older than the actuator's own last write.
	ManagerIsLast bool
	// UndoneBy is the field manager of a person who has undone an earlier roll, or empty if nobody has since the last roll.
	UndoneBy string
	// Unserved says that the API server does not serve the kind of the workload, or of one that runs its pods, so its state is unknown.
	Unserved bool
}

// record contains the data that the rolls of a workload have written on it.
type record struct {
	// Rolled contains the changes of the last rolls, by source. If others have written the annotation, it is the actuator's last record.
	Rolled map[string]RolledFor
	// Revision is the revision of the last roll, or empty if there was none.
	Revision string
	// Last is the mark of the last roll. It is zero if there is none, or if another client has written it.
	Last Last
	// rolledNow contains the values of AnnotationRollNow at the last roll: one value, or several as JSON.
	rolledNow string
	// rolledAt is when the workload was last rolled. It is zero if unknown.
	rolledAt time.Time
	rolls    rolls
}

// rolloutState is the state of the pod template and its pods.
type rolloutState struct {
	Progress Progress
	// template is the digest of the pod template, and bare that of the template without the parts that rolls write.
	template, bare digest
	// completed is the revision of the last roll whose rollout is known to have been complete. It is empty if there is none.
	completed string
	// templates are the earlier pod templates of the workload, the newest last.
	templates []pastTemplate
	// TemplateVersion is the resourceVersion of the write that last changed the pod template, or empty if unknown.
	TemplateVersion string
	// TemplateWritten is the time of that write by the API server's clock, in whole seconds. It is zero if unknown.
	TemplateWritten time.Time
	// ServingSince is a resourceVersion since which every seen state of the workload has had available pods of this template and no others. It is
	// empty if the current state has not.
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

// Sources returns the sources that may concern the workload by name: those that it references or its annotations name.
func (w *Workload) Sources() []events.Source {
	list := w.OptIn.names(w.ID.Namespace)
	for _, ref := range w.Refs {
		list = append(list, SourceNamed(ref.Kind, w.ID.Namespace, ref.Name))
	}
	return list
}

// problem records an invalid annotation of the workload. Item is empty if the whole annotation is invalid.
func (w *Workload) problem(annotation, item, problem string) {
	w.Problems = append(w.Problems, &itemError{annotation: annotation, item: item, problem: problem})
}
