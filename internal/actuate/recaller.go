package actuate

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// recallTimeout bounds one read of a last event.
const recallTimeout = 5 * time.Second

// recallAgain is the delay after which the question is asked a second time for a workload that has come to want a source. On a replicated stream, the
// first answer may be older than the last event, which may have been taken before anybody knew that the workload wants it.
const recallAgain = 5 * time.Second

// recallReason is why a workload needs a decision about a source.
type recallReason int

const (
	// recallReverted means that someone reverted a roll.
	recallReverted recallReason = iota
	// recallLinked means that the workload has come to want the source. The last event matters if its change is newer than that.
	recallLinked
	// recallOwed means that the workload waits to be rolled for the source, by its record. There is an answer even if the source has no event.
	recallOwed
	// recallReturned means that the kind of the workload is served again. The last event matters if it has an effect on the workload, and came
	// after the workload wanted it.
	recallReturned
)

// question says that one workload needs a decision about a source for which no delivery will come.
type question struct {
	workload workload.Key
	source   events.Source
	why      recallReason
	// again says that it is asked a second time, and seen is the id of the event that was the first answer, empty if there was none.
	again bool
	seen  string
}

// recaller reads the last event of a source from the stream again, for one workload. The questions are not on the stream and are lost with the
// leader, so whoever asks must be able to ask again, judging by the state of the workload.
type recaller struct {
	// last returns the last event of a source. The error wraps events.ErrNotFound if there is none.
	last func(context.Context, events.Source) (*events.Delivery, error)
	log  *slog.Logger
	now  func() time.Time
	// answers has an event for each question, in no order. A question about a source without an event has none, unless something is owed for it; nor
	// has one that is asked again if the answer is the same.
	answers chan answer

	mu     sync.Mutex
	asked  map[question]time.Time // when each is due
	signal chan struct{}
}

// answer is the last event of a source, for one workload. Nil: there is none.
type answer struct {
	question
	delivery *events.Delivery
}

func newRecaller(last func(context.Context, events.Source) (*events.Delivery, error), log *slog.Logger, now func() time.Time) *recaller {
	return &recaller{
		last: last, log: log, now: now, answers: make(chan answer), asked: make(map[question]time.Time), signal: make(chan struct{}, 1),
	}
}

// ask requests the last event of a source for a workload. It does not block, and asks the same question only once. It is safe for
// concurrent use.
func (r *recaller) ask(q question) { r.askAfter(q, 0) }

// askAfter is like ask, after a delay. It never delays a question that was asked before.
func (r *recaller) askAfter(q question, delay time.Duration) {
	due := r.now().Add(delay)
	r.mu.Lock()
	if earlier, ok := r.asked[q]; !ok || due.Before(earlier) {
		r.asked[q] = due
	}
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default: // signaled already
	}
}

// run answers until the context is done.
func (r *recaller) run(ctx context.Context) {
	for ctx.Err() == nil {
		q, wait := r.next()
		if wait <= 0 {
			seen := r.answer(ctx, q)
			if q.why == recallLinked && !q.again {
				q.again, q.seen = true, seen
				r.askAfter(q, recallAgain)
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.signal:
		case <-time.After(wait):
		}
	}
}

// next takes a question that is due. If there is none, it returns how long to wait at most.
func (r *recaller) next() (question, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := r.now(), time.Hour
	for q, due := range r.asked {
		left := due.Sub(now)
		if left <= 0 {
			delete(r.asked, q)
			return q, 0
		}
		wait = min(wait, left)
	}
	return question{}, wait
}

// answer reads the event until that succeeds, and waits until the loop takes it. It returns the id of the event, empty if there is none.
func (r *recaller) answer(ctx context.Context, q question) string {
	delays := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 100, Cap: 30 * time.Second}
	for {
		delivery, err := r.read(ctx, q.source)
		switch {
		case errors.Is(err, events.ErrNotFound) && q.why != recallOwed:
			return ""
		case errors.Is(err, events.ErrNotFound):
			r.give(ctx, answer{question: q})
			return ""
		case err == nil && q.again && delivery.Change.ID() == q.seen:
			return q.seen
		case err == nil:
			r.give(ctx, answer{question: q, delivery: delivery})
			return delivery.Change.ID()
		}
		if reject, ok := errors.AsType[*events.RejectError](err); ok {
			r.log.WarnContext(ctx, "last event not readable", "source", q.source.String(), "namespace", q.source.Namespace, "err", reject)
			return ""
		}
		delay := delays.Step()
		r.log.WarnContext(ctx, "cannot read the last event; retrying", "source", q.source.String(), "namespace", q.source.Namespace,
			"retry_in", delay, "err", err)
		if !backoff.Sleep(ctx, delay) {
			return ""
		}
	}
}

// give waits until the loop takes an answer.
func (r *recaller) give(ctx context.Context, a answer) {
	select {
	case r.answers <- a:
	case <-ctx.Done():
	}
}

func (r *recaller) read(ctx context.Context, source events.Source) (*events.Delivery, error) {
	bounded, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	return r.last(bounded, source)
}
