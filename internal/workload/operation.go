package workload

import "strings"

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
