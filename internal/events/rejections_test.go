package events

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestARejectionDoesNotWaitForTheServer(t *testing.T) {
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
		began := time.Now()
		for _, d := range deliveries {
			d.Done(t.Context(), rejectf("not-wanted", "no"))
		}
		if took := time.Since(began); took >= rejected*deadLetterTimeout {
			t.Errorf("rejecting %d events without a server took %s", rejected, took)
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
	s := startServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	first := consume(t, b, ConsumeOptions{AckWait: time.Hour})
	d := first.next()
	first.stop()
	d.Done(t.Context(), rejectf("not-wanted", "no"))
	again := consume(t, b, ConsumeOptions{AckWait: time.Hour}).next()
	if again.Deliveries != 2 {
		t.Errorf("it is delivery %d, want 2", again.Deliveries)
	}
	again.Done(t.Context(), nil)
}
