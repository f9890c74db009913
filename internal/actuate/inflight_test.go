package actuate

import (
	"context"
	"errors"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAnEventIsFinishedWhenItsLastHoldIsReleased(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	f := newInFlightEvents(options.Tracer, durable(options), a.metrics, options.Now)
	var finished []error
	f.done = func(_ *events.Delivery, _ context.Context, err error) { finished = append(finished, err) }
	first := f.begin(t.Context(), &events.Delivery{Change: changeOf(nil)})
	second := f.begin(t.Context(), &events.Delivery{Change: changeOf(nil)})
	first.open, second.open = 2, 1

	f.release(t.Context(), first)
	if len(finished) != 0 || len(f.open) != 2 {
		t.Fatalf("%d are finished and %d open after the first of two releases", len(finished), len(f.open))
	}
	denied := errors.New("denied")
	first.err = denied
	f.release(t.Context(), first)
	if len(finished) != 1 || !errors.Is(finished[0], denied) || len(f.open) != 1 {
		t.Fatalf("finished with %v, and %d are open; want one, with what went wrong", finished, len(f.open))
	}
	f.abandon(t.Context())
	if len(finished) != 2 || !errors.Is(finished[1], context.Canceled) || len(f.open) != 0 {
		t.Errorf("finished with %v, and %d are open; want the other one given back", finished, len(f.open))
	}
}
