package events

import (
	"testing"
	"time"
)

func TestRedeliveryDelayDoublesToOneMinuteWithJitter(t *testing.T) {
	const s = time.Second
	for deliveries, shortest := range []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s} {
		for range 100 {
			if got := redeliveryDelay(deliveries); got < shortest || got > shortest*6/5 {
				t.Errorf("after %d deliveries: got %s, want from %s to %s", deliveries, got, shortest, shortest*6/5)
			}
		}
	}
}
