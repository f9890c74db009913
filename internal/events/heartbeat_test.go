package events

import (
	"testing"
	"time"
)

func TestAnInFlightDeliveryIsNotDeliveredAgain(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	const wait = 300 * time.Millisecond
	c := consume(t, b, ConsumeOptions{AckWait: wait})
	d := c.next()
	select {
	case again := <-c.deliveries:
		t.Fatalf("it is delivered a second time: %+v", again)
	case <-time.After(4 * wait):
	}
	d.Done(t.Context(), nil)
	drained(t, b)
}

func TestADeliveryOfAProgramThatDiedIsDeliveredAgain(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	opts := ConsumeOptions{AckWait: 300 * time.Millisecond}
	first := consume(t, b, opts)
	first.next()
	first.stop()
	second := consume(t, s.bus(), opts)
	d := second.next()
	if d.Deliveries != 2 {
		t.Errorf("it is delivery %d, want 2", d.Deliveries)
	}
	d.Done(t.Context(), nil)
	drained(t, b)
}
