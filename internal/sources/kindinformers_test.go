package sources

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAKindHasSyncedWhenItsHandlerHasHadTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		queue := make(chan struct{})
		maker := &informerMaker{
			client: fake.NewClientset(secretOf("shop", "db", "u1", "1", "one")), ring: keyringOf(1),
			isNew:   func(*object, bool) bool { return false },
			noticed: func(events.Source) { <-queue },
			errors:  &watchErrors{readiness: &readiness{}, now: time.Now, log: slog.New(slog.DiscardHandler)},
		}
		kind, err := maker.makeAll(secretSource, []string{"shop", "bank"})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		kind.start(ctx, &running)
		synctest.Wait()
		if !kind.each[0].HasSynced() {
			t.Fatal("the informer has no first list")
		}
		if kind.hasSynced() {
			t.Error("the kind has synced though a source is not queued yet")
		}
		close(queue)
		synctest.Wait()
		if !kind.hasSynced() {
			t.Error("the kind has not synced though every source is queued")
		}
	})
}
