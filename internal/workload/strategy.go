package workload

import corev1 "k8s.io/api/core/v1"

// strategy is how the pods of a kind are replaced.
type strategy struct {
	// change returns the change of the pod template at a path that has them replaced.
	change func(w *Workload, template string, m mark) []operation
	// revision returns the revision that the last such change wrote, empty if there was none.
	revision func(*corev1.PodTemplateSpec) string
}

// mark is what a change of the pod template says about itself.
type mark struct {
	// revision is a digest of the record. It differs from roll to roll.
	revision string
	// cause says for people what the roll is for.
	cause string
	// traceparent is the trace context of the change, empty if it has none.
	traceparent string
}

// annotating replaces pods by annotations on the pod template.
var annotating = strategy{
	change: func(w *Workload, template string, m mark) []operation {
		var operations []operation
		annotations := template + "/metadata/annotations"
		if !w.stored.templateAnnotated {
			operations = begin(annotations)
		}
		at := func(name string) string { return annotations + "/" + pointer(name) }
		operations = append(operations, add(at(annotationRevision), m.revision), add(at(AnnotationCause), m.cause))
		switch {
		case m.traceparent != "":
			return append(operations, add(at(AnnotationTraceparent), m.traceparent))
		case w.stored.traced:
			return append(operations, remove(at(AnnotationTraceparent)))
		}
		return operations
	},
	revision: func(template *corev1.PodTemplateSpec) string { return template.Annotations[annotationRevision] },
}
