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

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAWorkerTriesAgainAndFinishesWhatItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending, log := newPendingSources(time.Now), &lockedBuffer{}
		measured, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), pending.length, none, newLedger(nil), allOf)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		tries := make(chan queueEntry, 2)
		one := &worker{
			pending: pending, metrics: measured, log: slog.New(slog.NewJSONHandler(log, nil)),
			reconcile: func(ctx context.Context, _ events.Source, entry *queueEntry) error {
				if ctx.Err() != nil {
					t.Error("the work is cut off")
				}
				if tries <- *entry; len(tries) == 1 {
					return errors.New("no answer")
				}
				cancel()
				return ctx.Err()
			},
		}
		var running sync.WaitGroup
		running.Go(func() { one.run(ctx) })
		pending.add(testSource, true)
		<-pending.quiet()
		if len(tries) != 1 || !strings.Contains(log.String(), "cannot publish an event; retrying") {
			t.Errorf("%d tries; the log is:\n%s", len(tries), log)
		}
		<-ctx.Done()
		<-pending.quiet()
		if first, second := <-tries, <-tries; first != second || !first.created {
			t.Errorf("tried with %+v and %+v, want the same entry twice", first, second)
		}
		pending.shutDown()
		running.Wait()
	})
}

func TestAWorkerPublishesWhatIsQueuedAtTheEndUnlessNATSDoesNotAnswer(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"it publishes all", nil, 100},
		{"it ends at the first failure", errors.New("no answer"), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pending := newPendingSources(time.Now)
			measured, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), pending.length, none, newLedger(nil), allOf)
			if err != nil {
				t.Fatal(err)
			}
			tries := 0
			one := &worker{
				pending: pending, metrics: measured, log: slog.New(slog.DiscardHandler),
				reconcile: func(context.Context, events.Source, *queueEntry) error { tries++; return tt.err },
			}
			for i := range 100 {
				pending.add(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("s%d", i)}, false)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			pending.shutDown()
			one.run(ctx)
			if tries != tt.want {
				t.Errorf("tried %d sources after the end, want %d", tries, tt.want)
			}
		})
	}
}

func TestAWorkerKeepsWhatWasNoticedOfAnUndecidedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending, log := newPendingSources(time.Now), &lockedBuffer{}
		tries := make(chan queueEntry, 2)
		one := &worker{
			pending: pending, log: slog.New(slog.NewJSONHandler(log, nil)),
			reconcile: func(_ context.Context, _ events.Source, entry *queueEntry) error {
				if tries <- *entry; len(tries) == 1 {
					return errUndecided
				}
				return nil
			},
		}
		var running sync.WaitGroup
		running.Go(func() { one.run(t.Context()) })
		pending.addGone(testSource)
		<-pending.quiet()
		<-time.After(2 * doubtInterval)
		pending.shutDown()
		running.Wait()
		if len(tries) != 2 || log.String() != "" {
			t.Fatalf("%d tries, want 2 and no log:\n%s", len(tries), log)
		}
		if first, second := <-tries, <-tries; first != second || !first.gone {
			t.Errorf("tried with %+v and %+v, want the same entry twice", first, second)
		}
	})
}

func TestAWorkerDropsWhatCanNeverBePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending, log := newPendingSources(time.Now), &lockedBuffer{}
		measured, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), pending.length, none, newLedger(nil), allOf)
		if err != nil {
			t.Fatal(err)
		}
		tries := map[events.Source]int{}
		one := &worker{
			pending: pending, metrics: measured, log: slog.New(slog.NewJSONHandler(log, nil)),
			reconcile: func(_ context.Context, source events.Source, _ *queueEntry) error {
				if tries[source]++; source == testSource {
					return errRefused
				}
				return nil
			},
		}
		var running sync.WaitGroup
		running.Go(func() { one.run(t.Context()) })
		pending.add(testSource, true)
		pending.add(otherSource, false)
		<-time.After(time.Hour)
		if text := log.String(); tries[testSource] != 1 || tries[otherSource] != 1 || strings.Count(text, "an event is not valid; dropping it") != 1 {
			t.Errorf("tried %v; the log is:\n%s", tries, text)
		}
		pending.add(testSource, false)
		synctest.Wait()
		if tries[testSource] != 2 {
			t.Errorf("tried %v, want once more after the change", tries)
		}
		pending.shutDown()
		running.Wait()
	})
}
