package actuate

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// terminating returns an API server whose namespaces are all being deleted. It would take patches.
func terminating() kubernetes.Interface {
	refused := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("it is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return answering(refused)
}

// answering returns an API server that gives the same answer to every creation of a Kubernetes Event.
func answering(err error) kubernetes.Interface {
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, err
	})
	return client
}

func TestOnlyANamespaceThatTheAPIServerSaysIsBeingDeletedIsTerminating(t *testing.T) {
	tests := []struct {
		name   string
		client kubernetes.Interface
		want   bool
	}{
		{"one that takes an Event", answering(nil), false},
		{"one that is being deleted", terminating(), true},
		{"one of which it is not known", answering(apierrors.NewInternalError(errors.New("no"))), false},
		{"one without the permission", answering(apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := isTerminating(t.Context(), test.client, "shop"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
