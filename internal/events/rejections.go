package events

import (
	"context"
	"sync"
)

// maxRejections is how many rejected events may wait for their dead letters. Any beyond that are redelivered later.
const maxRejections = 256

// rejections queues the rejected events of a consumer. One goroutine publishes their dead letters, so that rejecting an event
// does not wait for NATS.
type rejections struct {
	// publish publishes the dead letter of a delivery.
	publish func(context.Context, *Delivery, *RejectError) error

	mu    sync.Mutex
	ended bool
	queue chan rejection
}

type rejection struct {
	delivery *Delivery
	reject   *RejectError
}

func newRejections(publish func(context.Context, *Delivery, *RejectError) error) *rejections {
	return &rejections{publish: publish, queue: make(chan rejection, maxRejections)}
}

// add queues a rejection. It returns false if run will not finish it, because the queue is full or run has ended.
func (r *rejections) add(rejected rejection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	select {
	case r.queue <- rejected:
		return true
	default:
		return false
	}
}

// run finishes rejected events until ctx is done. It naks those that are left, so that they are redelivered and rejected again.
func (r *rejections) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case rejected := <-r.queue:
			r.finish(ctx, rejected)
		}
	}
	r.mu.Lock()
	r.ended = true
	close(r.queue)
	r.mu.Unlock()
	for rejected := range r.queue {
		rejected.delivery.nak(ctx)
	}
}

// finish publishes the dead letter before it terminates the message. If that fails, the message is redelivered: no event is
// rejected without a trace.
func (r *rejections) finish(ctx context.Context, rejected rejection) {
	d := rejected.delivery
	ctx = d.TraceContext(ctx)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadLetterTimeout)
	defer cancel()
	if err := r.publish(bounded, d, rejected.reject); err != nil {
		d.logger.WarnContext(ctx, "dead letter not published, event will be redelivered", d.attrs("err", err)...)
		d.nakLater(ctx)
		return
	}
	d.terminate(ctx, rejected.reject)
}
