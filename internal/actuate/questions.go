package actuate

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/kube"
)

// reportConfinement logs at startup whether the admission policy of deploy/admission restricts what this account may write. The policy refuses any
// Lease but the actuator's own, so the API server is asked to create another one, in a dry run: that takes no permission but the one of leader
// election, and no object that exists.
func reportConfinement(ctx context.Context, client kubernetes.Interface, namespace string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, kube.PatchTimeout)
	defer cancel()
	question := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-is-it-confined", Namespace: namespace}}
	_, err := client.CoordinationV1().Leases(namespace).Create(ctx, question, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case ctx.Err() != nil:
	case err == nil:
		log.WarnContext(ctx, "no admission policy confines this account; it may change everything of a workload",
			"want", "deploy/admission, on Kubernetes 1.30 or newer")
	case kube.IsDenied(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		log.InfoContext(ctx, "an admission policy confines this account to what Keyturn writes")
	default:
		log.InfoContext(ctx, "not known whether an admission policy confines this account", "err", err)
	}
}

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
