package notify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
)

func TestAnOutcomeThatIsDeliveredAgainIsQueuedOnceAndAnsweredOnce(t *testing.T) {
	q, answers := newQueue(), map[*bus.Delivery]error{}
	q.done = func(d *bus.Delivery, _ context.Context, err error) { answers[d] = err }
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	first, second, third := &bus.Delivery{Seq: 7, StoredAt: at}, &bus.Delivery{Seq: 7, StoredAt: at}, &bus.Delivery{Seq: 7, StoredAt: at}
	q.add(t.Context(), first)
	q.add(t.Context(), second)
	of := <-q.next
	if got := q.get(of); got != second {
		t.Errorf("got %p, want the last delivery", got)
	}
	q.add(t.Context(), third) // It is being sent.
	q.finish(t.Context(), of, nil)
	for _, d := range []*bus.Delivery{first, second} {
		if err := answers[d]; !errors.Is(err, bus.ErrRedelivered) {
			t.Errorf("an earlier delivery is answered %v, want %v", err, bus.ErrRedelivered)
		}
	}
	if err, ok := answers[third]; !ok || err != nil {
		t.Errorf("the last delivery is answered %v, %v, want it acked", err, ok)
	}
	if len(q.next) != 0 || len(q.last) != 0 {
		t.Errorf("%d are in the queue and %d known, want none", len(q.next), len(q.last))
	}
}

func TestAnotherOutcomeOfTheSameSequenceIsQueuedToo(t *testing.T) {
	q := newQueue()
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	q.add(t.Context(), &bus.Delivery{Seq: 7, StoredAt: at})
	q.add(t.Context(), &bus.Delivery{Seq: 7, StoredAt: at.Add(time.Hour)})
	if len(q.next) != 2 {
		t.Errorf("%d are in the queue, want both: the stream was created again", len(q.next))
	}
}
