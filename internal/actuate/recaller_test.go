package actuate

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// A replica of the stream may answer with an event that was just superseded. A scene has a stream without replicas.
func TestWhatANewReferenceAsksForIsAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 0
		r := newRecaller(func(_ context.Context, source events.Source) (*events.Delivery, error) {
			if version++; version == 1 {
				return nil, events.ErrNotFound
			}
			return &events.Delivery{Change: events.Change{Source: source, ResourceVersion: strconv.Itoa(version)}}, nil
		}, slog.New(slog.DiscardHandler), time.Now)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			r.run(ctx)
			close(ended)
		}()
		began := time.Now()
		r.ask(question{workload: workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"}, source: db, why: recallLinked})
		select {
		case got := <-r.answers:
			if got.delivery.Change.ResourceVersion != "2" || time.Since(began) != recallAgain {
				t.Errorf("got version %s after %s, want the second one after %s", got.delivery.Change.ResourceVersion, time.Since(began), recallAgain)
			}
		case <-time.After(time.Hour):
			t.Error("it is not asked again")
		}
		<-time.After(time.Hour)
		if version != 2 {
			t.Errorf("it was asked %d times, want twice", version)
		}
		stop()
		<-ended
	})
}
