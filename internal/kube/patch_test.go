package kube

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestARefusalIsToldFromAFailure(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	forbidden := func(text string) error { return apierrors.NewForbidden(deployments, "web", errors.New(text)) }
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"an admission webhook says no", forbidden(`admission webhook "policy" denied the request: no restarts today`), true},
		{"a quota is used up", forbidden("exceeded quota: pods"), true},
		{"the patch makes an object that is not valid", apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{}), true},
		{"the patch is not understood", apierrors.NewBadRequest("no"), true},
		{"the object would be too large", apierrors.NewRequestEntityTooLargeError("no"), true},
		{"a wrapped refusal is one", fmt.Errorf("patching: %w", apierrors.NewBadRequest("no")), true},
		{
			"a right that is missing can be granted",
			forbidden(`User "system:serviceaccount:keyturn-system:keyturn-actuator" cannot patch resource "deployments" in API group "apps"`),
			false,
		},
		{"the workload is gone", apierrors.NewNotFound(deployments, "web"), false},
		{"another workload has its name", apierrors.NewConflict(deployments, "web", errors.New("uid")), false},
		{"the API server has too much to do", apierrors.NewTooManyRequests("later", 1), false},
		{"the API server is not well", apierrors.NewInternalError(errors.New("no")), false},
		{"an admission webhook does not answer", apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{"nobody answers", errors.New("connection refused"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := IsDenied(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestAPatchIsTriedLaterAndLater(t *testing.T) {
	backoff := PatchBackoff()
	for attempt, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60} {
		want := time.Duration(seconds) * time.Second
		if got := backoff.Step(); got < want || got > want+want/10 {
			t.Errorf("after attempt %d it waits %s, want %s and at most a tenth more", attempt+1, got, want)
		}
	}
}
