package sources

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAKindHasSyncedWhenItsHandlerHasHadTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		queue := make(chan struct{})
		maker := &informerMaker{
			client: fake.NewClientset(secretOf("shop", "db", "u1", "1", "one")), ring: ringOf(t),
			handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-queue }},
			errors:  &watchErrors{readiness: &readiness{}, now: time.Now, log: slog.New(slog.DiscardHandler)},
		}
		kind, err := maker.makeAll(kindOf(t, events.KindSecret), []string{"shop", "bank"})
		must(t, err)
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
