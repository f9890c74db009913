package actuate

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// reporter reports outcomes: to the stream, and to people as Kubernetes Events.
type reporter struct {
	outbox *outbox
	kube   *kubeEvents
}

// report queues an outcome to be published, and its Kubernetes Event to be written.
func (t *reporter) report(ctx context.Context, outcome events.Outcome) {
	t.kube.report(ctx, outcome)
	t.outbox.add(outcome)
}

// warn queues a Kubernetes Event about the object of an outcome to be written, a warning.
func (t *reporter) warn(ctx context.Context, outcome events.Outcome, reason, message string) {
	t.kube.write(ctx, outcome.Workload, corev1.EventTypeWarning, reason, message, tracedBy(outcome))
}
