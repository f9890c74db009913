package workload

import corev1 "k8s.io/api/core/v1"

// strategy is how the pods of a kind are replaced.
type strategy struct {
	// change returns the change of the pod template that has them replaced, for a merge patch.
	change func(w *Workload, m mark) map[string]any
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
	change: func(_ *Workload, m mark) map[string]any {
		annotations := map[string]any{annotationRevision: m.revision, AnnotationCause: m.cause, AnnotationTraceparent: nil}
		if m.traceparent != "" {
			annotations[AnnotationTraceparent] = m.traceparent
		}
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}
	},
	revision: func(template *corev1.PodTemplateSpec) string { return template.Annotations[annotationRevision] },
}
