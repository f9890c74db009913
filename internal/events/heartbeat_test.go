package events

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// The server delivers again what was in no heartbeat for the ack wait.
func TestADeliveryThatIsInFlightHasHeartbeatsUntilItIsDone(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	d := consume(t, b, ConsumeOptions{AckWait: 3 * time.Second}).next()
	acks, err := s.connect().SubscribeSync(d.msg.Reply())
	must(t, err)
	next := func() string {
		t.Helper()
		ack, err := acks.NextMsg(testkit.Patience)
		must(t, err)
		return string(ack.Data)
	}
	for range 2 {
		if got := next(); got != "+WPI" {
			t.Fatalf("while it is in flight, it is answered with %q, want that work is in progress", got)
		}
	}
	d.Done(t.Context(), nil)
	last := next()
	for last == "+WPI" {
		last = next()
	}
	if last != "+ACK" {
		t.Errorf("when it is done, it is answered with %q", last)
	}
	drained(t, b)
}
