package actuate

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// outboxSize is the maximum number of outcomes that wait to be published. When it is reached, nothing is decided, so that no
	// outcome is lost.
	outboxSize = 4096
	// outboxPatience is how long an outcome waits at most while patches are under way: see docs/adr/0008-patches-go-first.md.
	outboxPatience = 5 * time.Second
)

// outbox holds the outcomes that are not handed to the publisher yet. It belongs to the loop.
type outbox struct {
	now func() time.Time
	// waiting are the outcomes, the oldest first, and since is when that one came.
	waiting []events.Outcome
	since   time.Time
}

// add queues an outcome to be published.
func (o *outbox) add(outcome events.Outcome) {
	if len(o.waiting) == 0 {
		o.since = o.now()
	}
	o.waiting = append(o.waiting, outcome)
}

// full reports whether nothing may be decided before outcomes are published.
func (o *outbox) full() bool { return len(o.waiting) >= outboxSize }

// next returns how long what waits may wait for patches at most, and false if nothing waits, or has waited for long enough.
func (o *outbox) next() (time.Duration, bool) {
	left := o.since.Add(outboxPatience).Sub(o.now())
	return left, len(o.waiting) > 0 && left > 0
}

// flushTo returns the channel to send what waits to, or nil, which disables the case of a select, while that is to wait. Patches go first, but not
// forever.
func (o *outbox) flushTo(batches chan<- []events.Outcome, patching bool) chan<- []events.Outcome {
	if len(o.waiting) == 0 || patching && !o.full() && o.now().Sub(o.since) < outboxPatience {
		return nil
	}
	return batches
}

// reporter reports outcomes: to the stream, and to people as Kubernetes Events. The parts that do so embed it, which also gives them what makes an
// outcome, the metrics, the log and the clock.
type reporter struct {
	outbox   *outbox
	kube     *kubeEvents
	outcomes outcomes
	metrics  *metrics
	log      *slog.Logger
	now      func() time.Time
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
