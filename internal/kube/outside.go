package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Outside returns the field selector of the objects that are in none of the namespaces, empty if there are none. The API server has it for
// every kind in a namespace, custom ones too, and asks for no permission on namespaces.
func Outside(namespaces []string) string {
	requirements := make([]string, 0, len(namespaces))
	for _, namespace := range namespaces {
		requirements = append(requirements, "metadata.namespace!="+namespace)
	}
	return strings.Join(requirements, ",")
}

// Includes reports whether a namespace is one of the named, or of all where none is named, and is not ignored.
func Includes(named, ignored []string, namespace string) bool {
	return (len(named) == 0 || slices.Contains(named, namespace)) && !slices.Contains(ignored, namespace)
}

// Fields returns the field selector of the objects that all of the selectors match. Empty ones match all.
func Fields(selectors ...string) string {
	var all []string
	for _, selector := range selectors {
		if selector != "" {
			all = append(all, selector)
		}
	}
	return strings.Join(all, ",")
}

// ValidateIgnored returns an error about the value of --ignore-namespaces: each must be the name of a namespace, and the others must not be named.
func ValidateIgnored(ignored, named []string) error {
	for _, namespace := range ignored {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("--ignore-namespaces: %q, want the name of a namespace", namespace)
		}
	}
	if len(ignored) > 0 && len(named) > 0 {
		return fmt.Errorf("--ignore-namespaces: %q, want none with --namespaces", strings.Join(ignored, ","))
	}
	return nil
}
