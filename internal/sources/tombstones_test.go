package sources

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestTombstonesAreForgottenWhenTheStreamHasDroppedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := newLedger(nil)
		names := func() map[string]bool {
			held := make(map[string]bool)
			for source := range known.all() {
				held[source.Name] = true
			}
			return held
		}
		for name, verb := range map[string]events.Verb{"there": events.VerbChanged, "gone": events.VerbDeleted} {
			source := testSource
			source.Name = name
			known.set(source, mustLast(t, events.Change{Verb: verb, Fingerprint: printed("0a", "1"), Time: time.Now().Add(time.Minute)}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { forgetTombstones(ctx, known, time.Now) })
		<-time.After(events.TombstoneTTL + time.Second)
		if diff := cmp.Diff(map[string]bool{"there": true, "gone": true}, names()); diff != "" {
			t.Errorf("before they are dropped (-want +got):\n%s", diff)
		}
		<-time.After(tombstoneInterval)
		if diff := cmp.Diff(map[string]bool{"there": true}, names()); diff != "" {
			t.Errorf("after they were dropped (-want +got):\n%s", diff)
		}
		stop()
		running.Wait()
	})
}
