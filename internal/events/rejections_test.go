package events

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

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
	var rejecting sync.WaitGroup
	defer rejecting.Wait()
	s.restart(func() {
		for _, d := range deliveries {
			rejecting.Go(func() { d.Done(t.Context(), rejectf("not-wanted", "no")) })
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
