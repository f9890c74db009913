package actuate

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// outboxSize is the maximum number of unpublished outcomes. At the maximum, nothing is decided, so that no outcome is lost.
	outboxSize = 4096
	// outboxPatience is how long an outcome may wait while patches are in flight. Reports compete with patches for the API server and NATS, and an
	// early patch helps those who wait for new credentials, while an early outcome helps nobody.
	outboxPatience = 5 * time.Second
	// publishBatch is the maximum number of outcomes that are published at a time.
	publishBatch   = 256
	publishTimeout = 5 * time.Second
	publishRetry   = time.Second
)

// outbox publishes outcomes to the stream, in a goroutine of its own. The loop adds them.
type outbox struct {
	*term
	// waiting are the outcomes that run has not received yet, the oldest first; since is when the oldest was added. Both belong to the loop.
	waiting []events.Outcome
	since   time.Time
	batches chan []events.Outcome
}

func (o *outbox) add(outcome events.Outcome) {
	if len(o.waiting) == 0 {
		o.since = o.now()
	}
	o.waiting = append(o.waiting, outcome)
}

func (o *outbox) full() bool { return len(o.waiting) >= outboxSize }

// next returns when the waiting outcomes stop waiting for patches, and false if no outcome waits for them.
func (o *outbox) next() (time.Time, bool) {
	end := o.since.Add(outboxPatience)
	return end, len(o.waiting) > 0 && o.now().Before(end)
}

// flush returns the channel for the waiting outcomes. While they wait for patches it is nil, which disables the case in a select.
func (o *outbox) flush(patching bool) chan<- []events.Outcome {
	if len(o.waiting) == 0 || patching && !o.full() && o.now().Sub(o.since) < outboxPatience {
		return nil
	}
	return o.batches
}

// run publishes until close is called. Once the context is done, it gives up the rest.
func (o *outbox) run(ctx context.Context) {
	for outcomes := range o.batches {
		for batch := range slices.Chunk(outcomes, publishBatch) {
			o.publish(ctx, batch)
		}
	}
}

// close ends run after it has published the waiting outcomes, or gives them up if run does not take them within the time of one attempt.
func (o *outbox) close(ctx context.Context) {
	if len(o.waiting) > 0 {
		select {
		case o.batches <- o.waiting:
		case <-time.After(publishTimeout):
			o.giveUp(ctx, o.waiting)
		}
	}
	close(o.batches)
}

// publish retries until all outcomes are published or the context is done.
func (o *outbox) publish(ctx context.Context, outcomes []events.Outcome) {
	for ctx.Err() == nil {
		if outcomes = o.try(ctx, outcomes); len(outcomes) == 0 {
			return
		}
		kube.Sleep(ctx, publishRetry)
	}
	o.giveUp(ctx, outcomes)
}

func (o *outbox) giveUp(ctx context.Context, outcomes []events.Outcome) {
	o.log.WarnContext(ctx, "outcomes not published", "outcomes", len(outcomes))
}

// try makes one attempt to publish outcomes, and returns those to retry. It does not return outcomes that the bus rejects.
func (o *outbox) try(ctx context.Context, outcomes []events.Outcome) (left []events.Outcome) {
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var failure error
	for i, err := range o.bus.PublishOutcomes(bounded, outcomes...) {
		o.metrics.published(ctx, err)
		switch {
		case retriable(err):
			left, failure = append(left, outcomes[i]), err
		case err != nil:
			o.log.WarnContext(outcomes[i].Trace.Context(ctx), "outcome rejected", "workload", outcomes[i].Workload.String(),
				"namespace", outcomes[i].Workload.Namespace, "verb", string(outcomes[i].Verb), "err", err)
		}
	}
	if failure != nil {
		o.log.WarnContext(ctx, "publishing outcomes failed; retrying", "outcomes", len(left), "retry_in", publishRetry, "err", failure)
	}
	return left
}

func retriable(err error) bool {
	_, isRejected := errors.AsType[*events.RejectError](err)
	return err != nil && !isRejected
}

func (t *term) report(ctx context.Context, outcome events.Outcome) {
	t.outbox.add(outcome)
	t.kube.report(ctx, outcome, "")
}

// ReportSync reports the end of the sync of an ExternalSecret. If warning is not empty, it is the reason of a Kubernetes Event.
func (t *term) ReportSync(ctx context.Context, outcome events.Outcome, warning string, took time.Duration) {
	t.outbox.add(outcome)
	if warning != "" {
		message := outcome.Reason + ": " + outcome.Message + " (" + outcome.Sources[0].Source + ")"
		t.kube.write(ctx, outcome.Workload, kube.Event{
			Type: corev1.EventTypeWarning, Reason: warning, Message: message, Annotations: tracedBy(outcome),
		})
	}
	t.metrics.synced(ctx, outcome.Reason, took)
}

// CountSync implements forcesync.Host.
func (t *term) CountSync(ctx context.Context, change int64) { t.metrics.syncsNow.Add(ctx, change) }

// CountFailedSync implements forcesync.Host.
func (t *term) CountFailedSync(ctx context.Context) { t.metrics.patchFailed(ctx, forcesync.Kind) }
