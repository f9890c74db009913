package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// stored is what a patch needs to know about a workload as the API server stores it.
type stored struct {
	// record has those annotations of the workload itself that a patch writes or tests.
	record []annotation
	// annotated and templateAnnotated say that the workload and its pod template have an annotations object, which may be empty in a custom
	// resource. metaTraced and traced say that they have events.AnnotationTraceparent.
	annotated, templateAnnotated, metaTraced, traced bool
	// containers is nil without --reloader. byVariable is Reading.Variables.
	containers *containers
	byVariable bool
}

// annotation is an entry of a short list. A map would need about 340 bytes for each workload.
type annotation struct{ name, text string }

func storedOf(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, reading Reading) stored {
	s := stored{annotated: meta.Annotations != nil, templateAnnotated: template.Annotations != nil, byVariable: reading.Variables}
	if reading.Reloader {
		s.containers = containersOf(template)
	}
	_, s.metaTraced = meta.Annotations[events.AnnotationTraceparent]
	_, s.traced = template.Annotations[events.AnnotationTraceparent]
	for _, name := range []string{annotationRolled, annotationReverted, annotationLast} {
		if text, ok := meta.Annotations[name]; ok {
			s.keep(name, text)
		}
	}
	return s
}

// keep remembers an annotation of the workload itself.
func (s *stored) keep(name, text string) {
	if i := s.index(name); i >= 0 {
		s.record[i].text = text
		return
	}
	s.record = append(s.record, annotation{name, text})
}

// index returns the index of an annotation in the record, or -1.
func (s stored) index(name string) int {
	return slices.IndexFunc(s.record, func(a annotation) bool { return a.name == name })
}

// text returns the value of an annotation of the record, or "" if there is none.
func (s stored) text(name string) string {
	if i := s.index(name); i >= 0 {
		return s.record[i].text
	}
	return ""
}

// unchanged returns a test that an annotation is as it was read.
func (s stored) unchanged(name string) operation {
	path := "/metadata/annotations/" + pointer(name)
	if i := s.index(name); i >= 0 {
		return test(path, s.record[i].text)
	}
	return test(path, nil)
}

// write returns the operations that set an annotation of the record, if it is still as it was read. An empty text removes the annotation.
func (s stored) write(name, text string) []operation {
	path, tested := "/metadata/annotations/"+pointer(name), s.unchanged(name)
	switch ok := s.index(name) >= 0; {
	case ok && text == "":
		return []operation{tested, remove(path)}
	case !ok && text == "":
		return []operation{tested}
	}
	return []operation{tested, add(path, text)}
}
