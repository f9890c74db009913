package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// bare returns a pod template without what a roll writes on it: Keyturn's annotations, and the marker and the variables of Reloader, whoever
// wrote them. If there is none of that, it returns the template itself, not a copy.
func bare(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	stripped := *template
	changed := false
	if slices.ContainsFunc(rollAnnotations, func(name string) bool { _, ok := template.Annotations[name]; return ok }) {
		changed = true
		stripped.Annotations = nil
		for name, text := range template.Annotations {
			if slices.Contains(rollAnnotations, name) {
				continue // most templates have no others
			}
			if stripped.Annotations == nil {
				stripped.Annotations = make(map[string]string)
			}
			stripped.Annotations[name] = text
		}
	}
	isOurs := func(v corev1.EnvVar) bool { return isReloaderVariable(v.Name) }
	for i := range template.Spec.Containers {
		if !slices.ContainsFunc(template.Spec.Containers[i].Env, isOurs) {
			continue
		}
		if &stripped.Spec.Containers[i] == &template.Spec.Containers[i] { // It is not cloned yet.
			stripped.Spec.Containers = slices.Clone(template.Spec.Containers)
		}
		c := &stripped.Spec.Containers[i]
		c.Env = slices.DeleteFunc(slices.Clone(c.Env), isOurs)
		changed = true
	}
	if !changed {
		return template
	}
	return &stripped
}

// rollAnnotations are the annotations on a pod template that a roll writes.
var rollAnnotations = []string{annotationRevision, events.AnnotationCause, events.AnnotationTraceparent, AnnotationReloadedFrom}
