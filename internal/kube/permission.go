package kube

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MissingPermission returns an error that says how to grant the right to list and watch a resource, if err is the API server's refusal;
// otherwise nil. The manifest is the file of this repository that grants the right.
func MissingPermission(resource, manifest string, err error) error {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("no permission to list and watch %s; grant it as in %s: %w", resource, manifest, err)
}
