package actuate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// publisherOf returns a publisher of the tests' cluster.
func publisherOf(t *testing.T, bus *events.Bus) *publisher {
	t.Helper()
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return newPublisher(bus, a.log, a.metrics)
}

// reportsOf returns reports of outcomes.
func reportsOf(outcomes ...events.Outcome) []report {
	var reports []report
	for _, outcome := range outcomes {
		reports = append(reports, report{outcome: outcome})
	}
	return reports
}

// publishing makes the publisher publish reports, and waits until it is done with all of them. That takes several attempts if an answer is late.
func publishing(t *testing.T, p *publisher, reports []report) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { p.run(t.Context()) })
	p.batches <- reports
	for left := len(reports); left > 0; {
		left -= len(testkit.Receive(t, fmt.Sprintf("the last %d of %d outcomes", left, len(reports)), p.published))
	}
	p.close(t.Context(), nil)
	running.Wait()
}

func TestOutcomesArePublishedUntilNoneIsLeft(t *testing.T) {
	p := publisherOf(t, busOf(t))
	refused := outcomeOf("refused")
	refused.Cluster = "another"
	publishing(t, p, reportsOf(outcomeOf("first"), refused, outcomeOf("last"))) // the one that is refused, too
	for _, name := range []string{"first", "last"} {
		var stored events.Stored
		natstest.Publish(t, func() (err error) {
			stored, err = p.bus.Last(t.Context(), events.OutcomeSubject("demo", outcomeOf(name).Workload))
			return err
		})
		got, err := stored.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(outcomeOf(name), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnOutcomeIsTriedUntilItIsPublished(t *testing.T) {
	nc, js := natstest.Streams(t)
	bus, err := events.Open(t.Context(), nc, "demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := publisherOf(t, bus)
	if err := js.DeleteStream(t.Context(), events.StreamChanges); err != nil {
		t.Fatal(err)
	}
	done, left := p.try(t.Context(), reportsOf(outcomeOf("web")))
	if len(done) != 0 || len(left) != 1 {
		t.Fatalf("%d are done with and %d left, where one stream is missing", len(done), len(left))
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "none is left where the stream is back", func(ctx context.Context) bool {
		done, left = p.try(ctx, left)
		return len(left) == 0
	})
	if len(done) != 1 {
		t.Errorf("%d are done with, want 1", len(done))
	}
}

func TestThePublisherEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	publisherOf(t, nil).run(ctx)
}

func TestAnOutcomeThatIsRefusedIsNotTriedAgain(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, false},
		{"nobody answers", nats.ErrTimeout, true},
		{"the bus refuses the outcome", fmt.Errorf("publishing: %w", &events.RejectError{Reason: "malformed", Err: errors.New("no")}), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := retriable(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
