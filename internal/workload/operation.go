package workload

import (
	"slices"

	"github.com/keyturn/keyturn/internal/kube"
)

// operation is one operation of a JSON patch. If one fails, the API server applies none of them.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// test fails unless the path has the given value. A nil value means that it has none: evanphx/json-patch treats a missing value as null.
func test(path string, value any) operation { return operation{"test", path, value} }

// add sets a value, whether or not one exists. The parent object must exist.
func add(path string, value any) operation { return operation{"add", path, value} }

// replace sets a value, and fails if none exists. At an array index it replaces the element, whereas add would insert before it.
func replace(path string, value any) operation { return operation{"replace", path, value} }

// remove fails if the path has no value.
func remove(path string) operation { return operation{"remove", path, nil} }

// begin adds an empty object, and fails if one exists by now, because its content must not be lost.
func begin(path string) []operation { return []operation{test(path, nil), add(path, struct{}{})} }

// ownAnnotations is the path of the annotations of the workload itself.
const ownAnnotations = "/metadata/annotations"

// stored contains the parts of a stored workload that a patch depends on.
type stored struct {
	// annotations contains the workload's own annotations that a patch writes or tests.
	annotations []annotation
	// annotated and templateAnnotated say that the workload and its pod template have an annotations object, which may be empty in a custom resource.
	// metaTraced and traced say that they have the annotation events.AnnotationTraceparent.
	annotated, templateAnnotated, metaTraced, traced bool
}

// annotation is an entry of a short list. A map would need about 340 bytes for each workload.
type annotation struct{ name, text string }

// find returns the value of an annotation, and false if there is none.
func (s stored) find(name string) (string, bool) {
	i := slices.IndexFunc(s.annotations, func(a annotation) bool { return a.name == name })
	if i < 0 {
		return "", false
	}
	return s.annotations[i].text, true
}

// text returns the value of an annotation, or "" if there is none.
func (s stored) text(name string) string {
	text, _ := s.find(name)
	return text
}

// unchanged returns a test that an annotation has the value that was read.
func (s stored) unchanged(name string) operation {
	path := ownAnnotations + kube.JSONPointer(name)
	if text, ok := s.find(name); ok {
		return test(path, text)
	}
	return test(path, nil)
}

// write returns the operations that set an annotation if it has the value that was read. An empty text removes it.
func (s stored) write(name, text string) []operation {
	tested := s.unchanged(name)
	switch {
	case text != "":
		return []operation{tested, add(tested.Path, text)}
	case tested.Value != nil:
		return []operation{tested, remove(tested.Path)}
	}
	return []operation{tested}
}
