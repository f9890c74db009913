package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Outside returns a field selector for the objects that are in none of the namespaces, or "" if no namespace is given. The API server
// supports it for every namespaced kind, including custom resources, and it needs no permission on namespaces.
func Outside(namespaces []string) string {
	requirements := make([]string, 0, len(namespaces))
	for _, namespace := range namespaces {
		requirements = append(requirements, "metadata.namespace!="+namespace)
	}
	return strings.Join(requirements, ",")
}

// Listed returns the namespaces that are listed and watched one by one: the named ones or, without any, all of them at once.
func Listed(named []string) []string {
	if len(named) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return named
}

// Includes reports whether a namespace is named, or none is, and the namespace is not ignored.
func Includes(named, ignored []string, namespace string) bool {
	return (len(named) == 0 || slices.Contains(named, namespace)) && !slices.Contains(ignored, namespace)
}

// Fields returns the field selector for objects that match all of the selectors. Empty selectors match everything.
func Fields(selectors ...string) string {
	return strings.Join(slices.DeleteFunc(selectors, func(selector string) bool { return selector == "" }), ",")
}

// ValidateIgnored validates the value of --ignore-namespaces: each must be a valid name, and --namespaces must not be set at the same time.
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

// Scope returns the name of a resource in a namespace, or in all of them, for messages: "deployments in namespace shop".
func Scope(resource, namespace string) string {
	if namespace == metav1.NamespaceAll {
		return resource
	}
	return resource + " in namespace " + namespace
}
