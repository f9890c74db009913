package events

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// The server counts what is postponed as in flight.
func TestPostponedEventsKeepNoOtherFromBeingDelivered(t *testing.T) {
	b := startServer(t).bus()
	const postponed = 1100 // more than a consumer has in flight by default
	for i := range postponed {
		mustPublish(t, b, version("postponed-"+strconv.Itoa(i), "1"), 0)
	}
	c := consume(t, b, ConsumeOptions{MaxAckPending: -1})
	for range postponed {
		c.next().Done(t.Context(), &PostponeError{For: time.Hour})
	}
	mustPublish(t, b, version("other", "1"), 0)
	d := c.next()
	if d.Change.Source.Name != "other" {
		t.Fatalf("%s is delivered", d.Change.Source.Name)
	}
	d.Done(t.Context(), &PostponeError{For: 20 * time.Millisecond})
	again := c.next()
	if again.Change.Source.Name != "other" || again.Deliveries != 2 {
		t.Errorf("delivery %d of %s, want the second of the one whose time has come", again.Deliveries, again.Change.Source.Name)
	}
	again.Done(t.Context(), nil)
	testkit.Eventually(t, "the others wait on the stream", func() bool {
		lag, err := b.Lag(t.Context(), "actuator")
		return err == nil && lag.AckPending == postponed
	})
}
