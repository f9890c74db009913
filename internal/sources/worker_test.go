package sources

import (
	"context"
	"errors"
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
		measured, err := newMetrics(metricnoop.NewMeterProvider().Meter(""), pending.length, newLedger(nil))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var tries []queueEntry
		one := &worker{
			pending: pending, metrics: measured, log: slog.New(slog.NewJSONHandler(log, nil)),
			reconcile: func(ctx context.Context, _ events.Source, entry queueEntry) error {
				if ctx.Err() != nil {
					t.Error("the work is cut off")
				}
				if tries = append(tries, entry); len(tries) == 1 {
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
		if len(tries) != 2 || tries[0] != tries[1] || !tries[0].created {
			t.Errorf("tried with %+v, want the same entry twice", tries)
		}
		pending.shutDown()
		running.Wait()
	})
}
