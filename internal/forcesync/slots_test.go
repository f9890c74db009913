package forcesync

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

func TestASlotIsTakenAndReturnedOnce(t *testing.T) {
	active := int64(0)
	l := slots{limit: 1, active: func(_ context.Context, change int64) { active += change }}
	s := &pendingSync{causes: []cause{{span: trace.SpanFromContext(t.Context())}}}
	if !l.free() {
		t.Error("no slot is free at first")
	}
	l.acquire(t.Context(), s)
	if l.free() || active != 1 {
		t.Errorf("the slot is still free, or %d are active", active)
	}
	l.release(t.Context(), s)
	l.release(t.Context(), s)
	if !l.free() || l.used != 0 || active != 0 {
		t.Errorf("%d slots are used and %d active after it was returned", l.used, active)
	}
}

func TestASyncerThatStopsReturnsItsSlots(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = time.Minute
		b.secret("db", "shop/db", "")
		b.start(b.host())
		b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		if b.active != 1 {
			t.Fatalf("%d slots are in use, want 1", b.active)
		}
		b.stop()
		if b.active != 0 {
			t.Errorf("%d slots are counted as in use after the Syncer has stopped", b.active)
		}
	})
}
