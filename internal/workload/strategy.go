package workload

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// strategy is how the pods of a kind are replaced.
type strategy struct {
	// change returns the operations that cause the pods to be replaced. template is the path of the pod template.
	change func(w *Workload, template string, m mark) []operation
	// revision returns the revision that the last change wrote, or "" if there was none.
	revision func(parts) string
	// wrote reports whether a workload has what a change has just written besides the revision. It is nil if only the revision is written.
	wrote func(*Workload) bool
	// where is the written field, if the API server may not know it. It is empty if the pod template is changed.
	where string
}

// Accepted returns an error that wraps ErrStripped if the response to a patch that rolls lacks the change that replaces pods.
func (k Kind) Accepted(after *Workload, p Patch) error {
	switch s := k.strategy; {
	case after.Revision == p.Revision && (s.wrote == nil || s.wrote(after)):
		return nil
	case s.where != "":
		return fmt.Errorf("%w: the schema of the kind has no field %s, or an admission webhook removes it", ErrStripped, s.where)
	}
	return fmt.Errorf("%w: an admission webhook removes the new annotations of the pod template", ErrStripped)
}

// mark describes a roll on the pod template.
type mark struct {
	// revision is a digest of the record. It differs from roll to roll.
	revision string
	// cause is the reason for the roll, for users.
	cause string
	// traceparent is the trace context of the change, empty if it has none.
	traceparent string
	// readFrom is the time from which starting pods read all changes of the roll.
	readFrom time.Time
	// others are the operations that write Reloader's marker or variables on the pod template. They come last, when the template has annotations.
	others []operation
}

// annotating replaces pods by annotations on the pod template.
var annotating = strategy{
	change: func(w *Workload, template string, m mark) []operation {
		annotations := template + "/metadata/annotations"
		var operations []operation
		if !w.stored.templateAnnotated {
			operations = begin(annotations)
		}
		operations = append(operations, annotate(annotations, w.stored.traced, m)...)
		return append(operations, m.others...)
	},
	revision: func(p parts) string { return p.template.Annotations[annotationRevision] },
}

// annotate returns the operations that write a mark into the annotations at a path. Traced says that these have an earlier trace context.
func annotate(annotations string, traced bool, m mark) []operation {
	at := func(name string) string { return annotations + kube.JSONPointer(name) }
	operations := []operation{add(at(annotationRevision), m.revision), add(at(events.AnnotationCause), m.cause)}
	switch {
	case m.traceparent != "":
		return append(operations, add(at(events.AnnotationTraceparent), m.traceparent))
	case traced:
		return append(operations, remove(at(events.AnnotationTraceparent)))
	}
	return operations
}

// starting starts new pods without a change of the pod template, unless the workload is suspended. The annotations are on the workload.
var starting = strategy{
	change: func(w *Workload, _ string, m mark) []operation {
		return append([]operation{test("/spec/suspend", false)}, annotate(ownAnnotations, w.stored.metaTraced, m)...)
	},
	revision: func(p parts) string { return p.meta.Annotations[annotationRevision] },
}
