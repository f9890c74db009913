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

// publishing makes the publisher publish reports, and returns those that are finished.
func publishing(t *testing.T, p *publisher, reports []report) []report {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { p.run(t.Context()) })
	p.batches <- reports
	done := <-p.published
	p.close(t.Context(), nil)
	running.Wait()
	return done
}

func TestOutcomesArePublishedUntilNoneIsLeft(t *testing.T) {
	p := publisherOf(t, busOf(t))
	refused := outcomeOf("refused")
	refused.Cluster = "another"
	if done := publishing(t, p, reportsOf(outcomeOf("first"), refused, outcomeOf("last"))); len(done) != 3 {
		t.Errorf("%d outcomes are done with, want all of them, the one that is refused too", len(done))
	}
	for _, name := range []string{"first", "last"} {
		stored, err := p.bus.Last(t.Context(), events.OutcomeSubject("demo", outcomeOf(name).Workload))
		if err != nil {
			t.Fatal(err)
		}
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
	if done, left = p.try(t.Context(), left); len(done) != 1 || len(left) != 0 {
		t.Errorf("%d are done with and %d left, where the stream is back", len(done), len(left))
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
