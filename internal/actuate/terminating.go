package actuate

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// errTerminating means that no patch was sent, because the namespace of the workload is being deleted.
var errTerminating = errors.New("the namespace is being deleted")

// isTerminating reports whether a namespace is being deleted, as far as it can be known. The actuator may not read namespaces everywhere, but the API
// server creates nothing in one that is being deleted, and says so: it is asked to create a Kubernetes Event, in a dry run.
func isTerminating(ctx context.Context, client kubernetes.Interface, namespace string) bool {
	question := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "keyturn.", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace, Namespace: namespace},
		Reason:         "Deleted", Message: "Is the namespace being deleted?", Type: corev1.EventTypeNormal,
		Source:              corev1.EventSource{Component: "keyturn"},
		ReportingController: "keyturn.dev/actuator",
	}
	_, err := client.CoreV1().Events(namespace).Create(ctx, question, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
