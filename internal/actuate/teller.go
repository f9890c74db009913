package actuate

import (
	"context"

	"github.com/keyturn/keyturn/internal/events"
)

// teller reports outcomes: to the stream, and to people as Kubernetes Events.
type teller struct {
	outbox *outbox
	kube   *kubeEvents
}

// report queues an outcome to be published, and its Kubernetes Event to be written.
func (t *teller) report(ctx context.Context, outcome events.Outcome) {
	t.reportStart(ctx, outcome, nil)
}

// reportStart reports the outcome of a rollout that the roll has started.
func (t *teller) reportStart(ctx context.Context, outcome events.Outcome, r *roll) {
	t.kube.tell(ctx, outcome)
	t.outbox.add(report{outcome: outcome, roll: r})
}
