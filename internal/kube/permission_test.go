package kube

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMissingPermission(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
	err := MissingPermission("secrets", "deploy/base/rbac.yaml", refusal)
	if !errors.Is(err, error(refusal)) {
		t.Errorf("got %v, want an error that wraps the refusal", err)
	}
	const want = "no permission to list and watch secrets; grant it as in deploy/base/rbac.yaml: secrets is forbidden"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, other := range []error{nil, errors.New("connection refused"), apierrors.NewUnauthorized("who are you")} {
		if err := MissingPermission("secrets", "deploy/base/rbac.yaml", other); err != nil {
			t.Errorf("%v: got %v, want nil", other, err)
		}
	}
}
