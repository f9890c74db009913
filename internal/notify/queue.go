package notify

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
)

// queue has the outcomes of a sink that wait to be sent, each once: the server delivers them again after a time in which NATS was unreachable.
type queue struct {
	next chan stored
	// done is bus.Delivery.Done, except in tests.
	done func(*bus.Delivery, context.Context, error)

	mu sync.Mutex
	// last has the last delivery of each. The stream takes an answer to one delivery as the answer to all, so only the last one answers.
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

// finish finishes an event that is no longer in the queue.
func (q *queue) finish(ctx context.Context, of stored, err error) {
	q.mu.Lock()
	d := q.last[of]
	delete(q.last, of)
	q.mu.Unlock()
	q.done(d, ctx, err)
}

// expiryGrace is how long after its expiry a message counts as gone from the stream: the server drops it within seconds, by its own clock.
const expiryGrace = 10 * time.Second

// parked has the messages of a sink that wait on the stream to be retried, and the time when the stream drops each, by their sequences. The time
// is zero for a message without an expiry of its own.
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

// drop forgets the messages that have expired and those outside of the stream's sequences, and returns how many there were.
func (p *parked) drop(now time.Time, first, last uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.ends)
	maps.DeleteFunc(p.ends, func(seq uint64, end time.Time) bool {
		return seq < first || seq > last || !end.IsZero() && now.After(end.Add(expiryGrace))
	})
	return before - len(p.ends)
}
