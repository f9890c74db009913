package forcesync

import (
	"testing"
	"time"
)

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
