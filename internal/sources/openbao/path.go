package openbao

import (
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// isPath reports whether the text is a path in a store, without slashes around it, that a request can be made of.
func isPath(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// namespaceHeader returns a namespace as requests name it: the root namespace is empty there.
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
