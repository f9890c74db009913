package openbao

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// isPath reports whether the text is a path in a store, without slashes around it, that can be part of a request.
func isPath(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// namespaceHeader returns the name of a namespace in requests, which is empty for the root namespace.
func namespaceHeader(namespace string) string {
	if namespace == events.RootNamespace {
		return ""
	}
	return namespace
}

// childNamespace returns the full path of a namespace inside another one.
func childNamespace(parent, child string) string {
	if parent == events.RootNamespace || parent == "" {
		return child
	}
	return parent + "/" + child
}
