package workload

import corev1 "k8s.io/api/core/v1"

// strategy is how the pods of a kind are replaced.
type strategy struct {
	// change returns the change of the pod template that replaces them, for a merge patch.
	change func(w *Workload, m mark) map[string]any
	// revision returns the revision of the last such change, or "".
	revision func(*corev1.PodTemplateSpec) string
}

// mark is what a roll writes on the pod template.
type mark struct {
	// revision is a digest of the record. Its change replaces the pods.
	revision string
	// cause is the cause of the roll, for people.
	cause string
	// traceparent is the trace context of the change. It may be empty.
	traceparent string
}

// annotating writes annotations on the pod template.
var annotating = strategy{
	change: func(_ *Workload, m mark) map[string]any {
		annotations := map[string]any{annotationRevision: m.revision, AnnotationCause: m.cause, AnnotationTraceparent: nil}
		if m.traceparent != "" {
			annotations[AnnotationTraceparent] = m.traceparent
		}
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}
	},
	revision: func(template *corev1.PodTemplateSpec) string { return template.Annotations[annotationRevision] },
}
