package project

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// maxOwed is the maximum number of unpublished reports of a resource. If there are more, the oldest are dropped: the log and the Kubernetes Events
// contain them, too.
const maxOwed = 16

// item is the state of a resource in the loop. All fields except causes belong to the worker that processes the resource.
type item struct {
	causes []*cause
	// answered is the number of causes with a report.
	answered int
	// owed contains the unpublished reports, at most maxOwed.
	owed []events.Projection
	// told is the last result that was reported, or that needed no report.
	told result
	// written is the resourceVersion of the last write.
	written string
	// failures counts consecutive failures.
	failures int
	backoff  wait.Backoff
	rewrites rewrites
}

func (i *item) owe(report events.Projection) {
	i.owed = append(i.owed, report)
	i.owed = i.owed[max(0, len(i.owed)-maxOwed):]
}

// isReported reports whether the given number of causes need not wait for an unavailable resource: the failure was reported for all of them, and each
// retry reads the Secret again. Events that are never acked would keep the server from delivering others.
func (i *item) isReported(causes int) bool {
	return i.told.reason == reasonUnavailable && len(i.owed) == 0 && i.answered == causes
}

// cause is the change of a Secret. It is acked when every resource that wants the Secret has been processed, or reported as unavailable.
type cause struct {
	delivery *bus.Delivery
	span     trace.Span
	left     atomic.Int64
}

func newCause(delivery *bus.Delivery, span trace.Span, resources int) *cause {
	c := &cause{delivery: delivery, span: span}
	c.left.Store(int64(resources))
	return c
}

// settled is called for each resource that has been processed.
func (c *cause) settled(ctx context.Context) {
	if c.left.Add(-1) <= 0 {
		c.delivery.Done(ctx, nil)
		c.span.End()
	}
}

// within returns ctx with the span of the newest cause, or ctx itself if there is none.
func within(ctx context.Context, causes []*cause) context.Context {
	if len(causes) == 0 {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, causes[len(causes)-1].span.SpanContext())
}

// quiet is the time without a write after which the backoff starts over.
const quiet = 10 * time.Minute

// rewrites spaces the writes of a resource without a change of a Secret. Otherwise, if an operator removed a value from the field, or a webhook
// altered it, the value would be written again immediately each time.
type rewrites struct {
	last, next time.Time
	backoff    wait.Backoff
}

func (r *rewrites) add(now time.Time) {
	if now.Sub(r.last) > quiet {
		r.backoff = kube.PatchBackoff()
	}
	r.last, r.next = now, now.Add(r.backoff.Step())
}

// pause returns how long the next write must wait. If the result is not positive, it need not wait.
func (r *rewrites) pause(now time.Time) time.Duration { return r.next.Sub(now) }
