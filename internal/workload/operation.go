package workload

import "strings"

// operation is one step of a JSON patch. If one of them fails, the API server applies none.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// test fails unless the value at the path is the one given. A nil value stands for nothing: evanphx/json-patch, which every API server
// applies patches with, takes what is missing for null.
func test(path string, value any) operation { return operation{"test", path, value} }

// add sets a value, also one that is there. The object that it becomes a member of must exist.
func add(path string, value any) operation { return operation{"add", path, value} }

// replace sets a value, and fails if there is none. At the index of an array it replaces what add would move.
func replace(path string, value any) operation { return operation{"replace", path, value} }

// remove fails if nothing is at the path.
func remove(path string) operation { return operation{"remove", path, nil} }

// begin adds an object that was missing, and fails if it no longer is: what others have put into it meanwhile must not be lost.
func begin(path string) []operation {
	return []operation{test(path, nil), add(path, struct{}{})}
}

// pointer returns a name as a JSON pointer has it.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
