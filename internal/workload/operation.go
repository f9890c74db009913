package workload

import (
	"slices"
	"strings"
)

// operation is one operation of a JSON patch. If one fails, the API server applies none.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// test fails unless the value at the path is the one given. A nil value means that there is none: evanphx/json-patch treats a missing value as null.
func test(path string, value any) operation { return operation{"test", path, value} }

// add sets a value, whether or not there is one already. The parent object must exist.
func add(path string, value any) operation { return operation{"add", path, value} }

// replace sets a value, and fails if there is none. At an array index it replaces the element, whereas add would insert before it.
func replace(path string, value any) operation { return operation{"replace", path, value} }

// remove fails if nothing is at the path.
func remove(path string) operation { return operation{"remove", path, nil} }

// begin adds an empty object, and fails if one exists by now: what others have put into it must not be lost.
func begin(path string) []operation { return []operation{test(path, nil), add(path, struct{}{})} }

// pointer escapes a name for use in a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// ownAnnotations is the path of the annotations of the workload itself.
const ownAnnotations = "/metadata/annotations"

// stored is what a patch needs to know about a workload as the API server stores it.
type stored struct {
	// annotations has those of the workload itself that a patch writes or tests.
	annotations []annotation
	// annotated and templateAnnotated say that the workload and its pod template have an annotations object, which may be empty in a custom
	// resource. metaTraced and traced say that they have events.AnnotationTraceparent.
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

// unchanged returns a test that an annotation is as it was read.
func (s stored) unchanged(name string) operation {
	path := ownAnnotations + "/" + pointer(name)
	if text, ok := s.find(name); ok {
		return test(path, text)
	}
	return test(path, nil)
}

// write returns the operations that set an annotation, if it is still as it was read. An empty text removes the annotation.
func (s stored) write(name, text string) []operation {
	path, tested := ownAnnotations+"/"+pointer(name), s.unchanged(name)
	_, exists := s.find(name)
	switch {
	case text != "":
		return []operation{tested, add(path, text)}
	case exists:
		return []operation{tested, remove(path)}
	}
	return []operation{tested}
}
