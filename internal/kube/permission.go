package kube

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MissingPermission returns an error that says how to grant permission to list and watch a resource, if err says that it is missing;
// otherwise nil. Manifest is the file of this repository that grants the permission.
func MissingPermission(resource, manifest string, err error) error {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("no permission to list and watch %s; grant it as in %s: %w", resource, manifest, err)
}

// Scope returns how messages name a resource in a namespace, or in all of them: "deployments in namespace shop".
func Scope(resource, namespace string) string {
	if namespace == metav1.NamespaceAll {
		return resource
	}
	return resource + " in namespace " + namespace
}
