package notify

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
)

// queue contains the waiting outcomes of a sink, each once: the server delivers them again after an interruption of NATS.
type queue struct {
	next chan stored
	// done is bus.Delivery.Done, except in tests.
	done func(*bus.Delivery, context.Context, error)

	mu sync.Mutex
	// last contains the last delivery of each event. An acknowledgement of one delivery counts for all, so only the last one is acknowledged.
	last map[stored]*bus.Delivery
}

// stored identifies an event. A stream that was lost and created again uses the same sequences for other events.
type stored struct {
	seq uint64
	at  time.Time
}

func newQueue() *queue {
	return &queue{next: make(chan stored, maxInFlight), done: (*bus.Delivery).Done, last: make(map[stored]*bus.Delivery)}
}

// add queues a delivery, unless an earlier one of the same event is in the queue or is being sent. It waits for room until ctx ends.
func (q *queue) add(ctx context.Context, d *bus.Delivery) {
	of := stored{d.Seq, d.StoredAt}
	q.mu.Lock()
	before := q.last[of]
	q.last[of] = d
	q.mu.Unlock()
	if before != nil {
		q.done(before, ctx, bus.ErrRedelivered)
		return
	}
	select {
	case q.next <- of:
	case <-ctx.Done():
		q.finish(ctx, of, context.Canceled)
	}
}

func (q *queue) get(of stored) *bus.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last[of]
}

// finish finishes an event that is not in the queue any more.
func (q *queue) finish(ctx context.Context, of stored, err error) {
	q.mu.Lock()
	d := q.last[of]
	delete(q.last, of)
	q.mu.Unlock()
	q.done(d, ctx, err)
}

// expiryGrace is the time after its expiry from which a message counts as gone from the stream: the server drops it within seconds, by its own clock.
const expiryGrace = 10 * time.Second

// parked contains the messages of a sink that wait on the stream for a retry, by sequence, with the time when the stream drops each. The time is zero
// for a message without an expiry of its own.
type parked struct {
	mu   sync.Mutex
	ends map[uint64]time.Time
}

func (p *parked) add(seq uint64, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends[seq] = end
}

// remove is called for a message that is delivered again.
func (p *parked) remove(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ends, seq)
}

// drop forgets messages that have expired or are outside of the stream's sequences, and returns their number.
func (p *parked) drop(now time.Time, first, last uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.ends)
	maps.DeleteFunc(p.ends, func(seq uint64, end time.Time) bool {
		return seq < first || seq > last || !end.IsZero() && now.After(end.Add(expiryGrace))
	})
	return before - len(p.ends)
}
