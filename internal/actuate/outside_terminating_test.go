//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// A Secret that the pods can start without is deleted, maybe with the whole namespace. The API server says so when it is to create a Kubernetes Event.
func TestOnlyANamespaceThatTheAPIServerSaysIsBeingDeletedIsTerminating(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := []struct {
		name  string
		err   error
		rolls []string
	}{
		{"one that takes an Event", nil, []string{"web"}},
		{"one that is being deleted", terminating, nil},
		{"one of which it is not known", apierrors.NewInternalError(errors.New("no")), []string{"web"}},
		{"one without the permission", apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no")), []string{"web"}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.RollOnDelete = true
			s.workload("web", auto, reads("secret/db?"))
			s.observe("secret/db")
			s.start()
			s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return tt.err != nil, nil, tt.err })
			s.pass(time.Minute)
			s.erase("secret/db")
			s.pass(time.Minute)
			s.wantRolls(tt.rolls...)
			if tt.rolls == nil {
				s.wantTold("web failed patch-denied")
				return
			}
			s.wantTold("web started deleted", "web completed rolled-out")
		})
	}
}
