package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// unanswered is a message whose answers nobody receives.
type unanswered struct{ jetstream.Msg }

func (unanswered) Nak() error { return nil }

func (unanswered) TermWithReason(string) error { return nil }

func TestARejectionDoesNotWaitForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		publishing, release := make(chan struct{}), make(chan struct{})
		r := newRejections(func(context.Context, *Delivery, *RejectError) error {
			close(publishing)
			<-release
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.run(ctx) })
		reject := func() {
			d := &Delivery{msg: unanswered{}, heartbeat: newHeartbeat(), rejections: r, logger: slog.New(slog.DiscardHandler)}
			d.Done(t.Context(), rejectf("not-wanted", "no"))
		}
		began := time.Now()
		reject()
		<-publishing
		reject() // while the first one waits for its dead letter
		if took := time.Since(began); took != 0 {
			t.Errorf("rejecting takes %s while the server does not answer", took)
		}
		cancel()
		close(release)
		running.Wait()
	})
}

func TestWhatIsRejectedWithoutAServerHasItsDeadLetterLater(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	c := consume(t, b, ConsumeOptions{AckWait: time.Second})
	const rejected = 4
	var deliveries []*Delivery
	for i := range rejected {
		mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
		deliveries = append(deliveries, c.next())
	}
	s.restart(func() {
		for _, d := range deliveries {
			d.Done(t.Context(), rejectf("not-wanted", "no"))
		}
	})
	testkit.Await(t, "each has a dead letter", func(ctx context.Context) bool {
		select {
		case d := <-c.deliveries:
			d.Done(t.Context(), rejectf("not-wanted", "no"))
		default:
		}
		letters, err := b.DeadLetters(ctx, 10)
		return err == nil && len(letters) == rejected
	})
	c.stop()
}

func TestWhatIsRejectedAfterTheConsumerEndedIsDeliveredAgain(t *testing.T) {
	b := sharedServer(t).bus()
	mustPublish(t, b, version("db", "1"), 0)
	first := consume(t, b, ConsumeOptions{AckWait: time.Hour})
	d := first.next()
	first.stop()
	testkit.Await(t, "no request of the first consumer is left, which would be answered with what is given back", func(ctx context.Context) bool {
		consumer, err := b.changes.Consumer(ctx, "actuator")
		return err == nil && consumer.CachedInfo().NumWaiting == 0
	})
	d.Done(t.Context(), rejectf("not-wanted", "no"))
	again := consume(t, b, ConsumeOptions{AckWait: time.Hour}).next()
	if again.Deliveries != 2 {
		t.Errorf("it is delivery %d, want 2", again.Deliveries)
	}
	again.Done(t.Context(), nil)
}
