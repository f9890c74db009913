package events

const (
	// AnnotationCause is the annotation that says what an object was written for. On a pod template, it tells people what the last roll was for.
	// On an ExternalSecret, it is the id of the event for which a sync is requested, and the operator copies it to the Secret, unless the
	// ExternalSecret has a template.
	AnnotationCause = "keyturn.dev/cause"
	// AnnotationTraceparent is the annotation with the trace context of what AnnotationCause says. A Kubernetes Event has it alone, with the
	// context of what it reports.
	AnnotationTraceparent = "keyturn.dev/traceparent"
)
