package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// workFunc is the work on a source.
type workFunc func(context.Context, events.Source, *queueEntry) error

func (f workFunc) reconcile(ctx context.Context, source events.Source, entry *queueEntry) error {
	return f(ctx, source, entry)
}

func workerOf(t *testing.T, work workFunc) (*worker, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	return &worker{
		pending: newPendingSources(time.Now), metrics: unmeasured(t, newLedger()), log: slog.New(slog.NewJSONHandler(log, nil)), reconciler: work,
	}, log
}

func TestAWorkerTriesAgainAndFinishesWhatItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries := make(chan queueEntry, 2)
		one, log := workerOf(t, func(ctx context.Context, _ events.Source, entry *queueEntry) error {
			if ctx.Err() != nil {
				t.Error("the work is cut off")
			}
			if tries <- *entry; len(tries) == 1 {
				return errors.New("no answer")
			}
			cancel()
			return ctx.Err()
		})
		var running sync.WaitGroup
		running.Go(func() { one.run(ctx) })
		one.pending.put(testSource, queueEntry{created: true})
		<-one.pending.quiet()
		if len(tries) != 1 || !strings.Contains(log.String(), "cannot publish an event; retrying") {
			t.Errorf("%d tries; the log is:\n%s", len(tries), log)
		}
		<-ctx.Done()
		<-one.pending.quiet()
		if first, second := <-tries, <-tries; first != second || !first.created {
			t.Errorf("tried with %+v and %+v, want the same entry twice", first, second)
		}
		one.pending.shutDown()
		running.Wait()
	})
}

func TestAWorkerPublishesWhatIsQueuedAtTheEndUnlessNATSDoesNotAnswer(t *testing.T) {
	for want, err := range map[int]error{100: nil, 1: errors.New("no answer")} {
		tries := 0
		one, _ := workerOf(t, func(context.Context, events.Source, *queueEntry) error { tries++; return err })
		for i := range 100 {
			one.pending.add(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("s%d", i)})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		one.pending.shutDown()
		one.run(ctx)
		if tries != want {
			t.Errorf("tried %d sources after the end, want %d", tries, want)
		}
	}
}

func TestAWorkerDropsWhatCanNeverBePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[events.Source]int{}
		one, log := workerOf(t, func(_ context.Context, source events.Source, _ *queueEntry) error {
			if tries[source]++; source == testSource {
				return errRefused
			}
			return nil
		})
		var running sync.WaitGroup
		running.Go(func() { one.run(t.Context()) })
		one.pending.put(testSource, queueEntry{created: true})
		one.pending.add(otherSource)
		<-time.After(time.Hour)
		if text := log.String(); tries[testSource] != 1 || tries[otherSource] != 1 || strings.Count(text, "an event is not valid; dropping it") != 1 {
			t.Errorf("tried %v; the log is:\n%s", tries, text)
		}
		one.pending.add(testSource)
		synctest.Wait()
		if tries[testSource] != 2 {
			t.Errorf("tried %v, want once more after the change", tries)
		}
		one.pending.shutDown()
		running.Wait()
	})
}
