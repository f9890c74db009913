package workload

import "time"

// strategy is how the pods of a kind are replaced.
type strategy struct {
	// change returns the change of the pod template at a path that has them replaced.
	change func(w *Workload, template string, m mark) []operation
	// revision returns the revision that the last such change wrote, empty if there was none.
	revision func(parts) string
}

// mark is what a change of the pod template says about itself.
type mark struct {
	// revision is a digest of the record. It differs from roll to roll.
	revision string
	// cause says for people what the roll is for.
	cause string
	// traceparent is the trace context of the change, empty if it has none.
	traceparent string
	// readFrom is the time from which on pods start with all changes that a roll is for.
	readFrom time.Time
	// others are the operations for whoever looks for what Reloader writes on the pod template, which has annotations by then.
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

// annotate writes a mark into the annotations at a path. Traced says that there is a trace context of an earlier one.
func annotate(annotations string, traced bool, m mark) []operation {
	at := func(name string) string { return annotations + "/" + pointer(name) }
	operations := []operation{add(at(annotationRevision), m.revision), add(at(AnnotationCause), m.cause)}
	switch {
	case m.traceparent != "":
		return append(operations, add(at(AnnotationTraceparent), m.traceparent))
	case traced:
		return append(operations, remove(at(AnnotationTraceparent)))
	}
	return operations
}
