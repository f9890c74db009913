package workload

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// operation is one operation of a JSON patch. If one fails, the API server applies none.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// test fails unless the value at the path is the one given. A nil value means that there is none: evanphx/json-patch, with which every
// API server applies patches, treats a missing value as null.
func test(path string, value any) operation { return operation{"test", path, value} }

// add sets a value, whether or not there is one already. The parent object must exist.
func add(path string, value any) operation { return operation{"add", path, value} }

// replace sets a value, and fails if there is none. At an array index it replaces the element, whereas add would insert before it.
func replace(path string, value any) operation { return operation{"replace", path, value} }

// remove fails if nothing is at the path.
func remove(path string) operation { return operation{"remove", path, nil} }

// begin adds an empty object, and fails if one exists by now: what others have put into it must not be lost.
func begin(path string) []operation {
	return []operation{test(path, nil), add(path, struct{}{})}
}

// pointer escapes a name for use in a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

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
