package plugin

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// right is a permission that a request of the user needs.
type right struct{ verb, resource, namespace string }

func (r right) String() string {
	if r.namespace == "" {
		return r.verb + " " + r.resource + " in all namespaces"
	}
	return r.verb + " " + r.resource + " in namespace " + r.namespace
}

// explain returns the error of a request. If the API server refused it, the error says which permission is missing, and whom to ask for what.
func (r right) explain(err error) error {
	if apierrors.IsForbidden(err) {
		return r.missing()
	}
	return fmt.Errorf("%s: %w", r, err)
}

func (r right) missing() error {
	return fmt.Errorf("no permission to %s: ask an administrator of the cluster to bind the Role of docs/kubectl-keyturn.md#rights to you", r)
}
