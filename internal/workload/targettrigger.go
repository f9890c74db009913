package workload

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/kube"
)

// annotationTriggeredAt, on an object of a target whose trigger is a time, is the time that the last roll wrote.
const annotationTriggeredAt = "keyturn.dev/triggered-at"

// targetTrigger is the place that is written on an object of a target to replace pods.
type targetTrigger struct {
	// names are the fields on the path to the trigger.
	names []string
	// ofMap says that the trigger is a map of annotations that pods get. Otherwise it is a single field.
	ofMap bool
	// value and text are the fields of targetTriggerConfig.
	value, text string
}

// isAnnotation reports whether the trigger is one of the object's own annotations.
func (t targetTrigger) isAnnotation() bool {
	return !t.ofMap && len(t.names) > 0 && t.names[0] == "metadata"
}

// read reads the value of an object's trigger and adds it to the template, because a change of the trigger replaces the pods.
func (t targetTrigger) read(object map[string]any, template *corev1.PodTemplateSpec, of *targetParts) {
	var at any = object
	for i, name := range t.names {
		fields, _ := at.(map[string]any)
		at = fields[name]
		container := t.ofMap || i < len(t.names)-1
		if at == nil && container && !t.isAnnotation() { // If the object has no annotations, the record adds them.
			of.missing = append(of.missing, kube.JSONPointer(t.names[:i+1]...))
		}
	}
	if t.ofMap {
		annotations := make(map[string]string)
		entries, _ := at.(map[string]any)
		for name, value := range entries {
			annotations[name], _ = value.(string)
		}
		template.Annotations = annotations
		return
	}
	of.trigger, of.triggered = runtime.DeepCopyJSONValue(at), t.value == "" && at == any(t.text)
	if text, ok := at.(string); ok {
		if template.Annotations == nil {
			template.Annotations = make(map[string]string)
		}
		template.Annotations[annotationRevision] = text
	}
}

// strategy returns how pods are replaced. If the trigger is a field, the annotations of the roll are on the object itself.
func (t targetTrigger) strategy() strategy {
	if t.ofMap {
		return strategy{
			change: func(w *Workload, _ string, m mark) []operation {
				return append(t.begin(w), annotate(kube.JSONPointer(t.names...), w.stored.traced, m)...)
			},
			revision: annotating.revision,
			where:    strings.Join(t.names, "."),
		}
	}
	return strategy{change: t.set, revision: t.revision, wrote: t.wrote, where: strings.Join(t.names, ".")}
}

// wrote reports whether a fixed text is in the field, which the revision does not show.
func (t targetTrigger) wrote(after *Workload) bool { return t.value != "" || after.target.triggered }

// IsTriggered reports whether the fixed text that triggered the last roll is still there. Until the operator removes it, no patch rolls.
func (w *Workload) IsTriggered() bool { return w.target != nil && w.target.triggered }

// begin returns the operations that add the missing objects on the path.
func (t targetTrigger) begin(w *Workload) []operation {
	var operations []operation
	for _, path := range w.target.missing {
		operations = append(operations, begin(path)...)
	}
	return operations
}

// set returns the operations that change a field if it still has the value that was read.
func (t targetTrigger) set(w *Workload, _ string, m mark) []operation {
	// The operator removes a fixed text after it has acted on it. Until then, the patch fails.
	path, value, held := kube.JSONPointer(t.names...), t.text, any(nil)
	switch t.value {
	case valueRevision:
		value, held = m.revision, w.target.trigger
	case valueTime:
		value, held = w.nextRestart(m.readFrom), w.target.trigger
	}
	operations := append(t.begin(w), test(path, held), add(path, value))
	if t.value == valueTime {
		operations = append(operations, add(ownAnnotations+kube.JSONPointer(annotationTriggeredAt), value))
	}
	return slices.Concat(operations, annotate(ownAnnotations, w.stored.metaTraced, m))
}

// revision returns the revision of the last roll, or "" if its trigger was undone. A removed fixed text is not undone, because the controller removes
// it, and neither is a later time, because it replaces pods, too.
func (t targetTrigger) revision(p parts) string {
	revision := p.meta.Annotations[annotationRevision]
	held, _ := p.target.trigger.(string)
	switch t.value {
	case valueRevision:
		if held != revision {
			return ""
		}
	case valueTime:
		// Any other text replaces pods, too: some clients write the seconds since 1970.
		_, err := time.Parse(time.RFC3339, held)
		if !isRestarted(p.meta.Annotations[annotationTriggeredAt], held) && (held == "" || err == nil) {
			return ""
		}
	}
	return revision
}
