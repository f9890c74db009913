package workload

import (
	"crypto/sha256"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// maxTemplates is how many earlier pod templates are remembered, as many as the default number of ReplicaSets of a Deployment.
const maxTemplates = 10

// digest identifies a pod template.
type digest [sha256.Size]byte

// pastTemplate is a pod template that a workload had earlier.
type pastTemplate struct {
	digest digest
	// version and written are the TemplateVersion and TemplateWritten of the template.
	version string
	written time.Time
}

// After copies the remembered data of an earlier state, which may be nil, to w and returns w. Exact says that a single write led from earlier to w.
func (w *Workload) After(earlier *Workload, exact bool) *Workload {
	w.recallCompleted(earlier)
	if earlier == nil || earlier.ID.UID != w.ID.UID {
		if exact {
			w.TemplateVersion, w.TemplateWritten = w.Version, w.Written
		}
		return w
	}
	w.recallKept(earlier)
	w.recallRecord(earlier)
	w.recallUndone(earlier)
	w.recallReverted(earlier)
	w.recallRolls(earlier)
	w.templates = earlier.templates
	// If the template only determines how pods will start, its change replaces no pods.
	if earlier.template == w.template || w.starts {
		w.TemplateVersion, w.TemplateWritten = earlier.TemplateVersion, earlier.TemplateWritten
		// After a write of a Deployment's annotations, its status is about an earlier generation for a moment. The pods are the same.
		if earlier.ServingSince != "" && (w.ServingSince != "" || w.Progress.Done == nothingDone) {
			w.ServingSince = earlier.ServingSince
		}
		return w
	}
	w.templates = remember(earlier.templates, pastTemplate{earlier.template, earlier.TemplateVersion, earlier.TemplateWritten})
	known := slices.IndexFunc(w.templates, func(t pastTemplate) bool { return t.digest == w.template })
	switch {
	case known >= 0 && (!exact || !w.isByReloader()):
		// A return to an earlier template may bring back its pods, which are as old as the template.
		w.TemplateVersion, w.TemplateWritten = w.templates[known].version, w.templates[known].written
	case exact:
		w.TemplateVersion, w.TemplateWritten = w.Version, w.Written
	}
	return w
}

// remember returns a new list with last as the newest template. Other states share the old one.
func remember(templates []pastTemplate, last pastTemplate) []pastTemplate {
	list := slices.DeleteFunc(slices.Clone(templates), func(t pastTemplate) bool { return t.digest == last.digest })
	list = append(list, last)
	return list[max(0, len(list)-maxTemplates):]
}

// digestOf returns the digest of a pod template.
func digestOf(template *corev1.PodTemplateSpec) digest {
	// The encoding of the API is deterministic, and cannot fail for a decoded template.
	encoded, err := template.Marshal()
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(encoded)
}

// bare returns a pod template without the parts that rolls write: Keyturn's annotations, Reloader's marker and variables. It may be the same one.
func bare(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	isOurs := func(v corev1.EnvVar) bool { return isReloaderVariable(v.Name) }
	isRolled := slices.ContainsFunc(rollAnnotations, func(name string) bool { _, ok := template.Annotations[name]; return ok })
	for i := range template.Spec.Containers {
		isRolled = isRolled || slices.ContainsFunc(template.Spec.Containers[i].Env, isOurs)
	}
	if !isRolled {
		return template
	}
	stripped := template.DeepCopy()
	for _, name := range rollAnnotations {
		delete(stripped.Annotations, name)
	}
	for i := range stripped.Spec.Containers {
		c := &stripped.Spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, isOurs)
	}
	return stripped
}

// rollAnnotations are the annotations on a pod template that a roll writes.
var rollAnnotations = []string{annotationRevision, events.AnnotationCause, events.AnnotationTraceparent, AnnotationReloadedFrom}
