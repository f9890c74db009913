package sources

import (
	"context"
	"errors"
	"log/slog"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// worker reconciles pending sources, one at a time.
type worker struct {
	pending    *pendingSources
	inFlight   *bus.InFlight // of all workers
	reconciler sourceReconciler
	progress   *telemetry.Progress
	metrics    *metrics
	log        *slog.Logger
}

// sourceReconciler publishes the event of a source, if there is one.
type sourceReconciler interface {
	reconcile(ctx context.Context, source events.Source, entry *queueEntry) error
}

// run works until the queue is shut down and empty. After the end of ctx, it stops at the first source that cannot be published: NATS does not
// answer, and each of the others would wait for publishTimeout, too.
func (w *worker) run(ctx context.Context) {
	for w.next(ctx) {
	}
}

// next works on the next source. It first waits until another publication may be in flight, so that the published state is the latest and the attempt
// has its full time. It returns false if there is nothing more to do.
func (w *worker) next(ctx context.Context) bool {
	w.inFlight.Enter()
	defer w.inFlight.Leave()
	source, entry, ok := w.pending.take()
	if !ok {
		return false
	}
	w.progress.Busy()
	defer w.progress.Idle()
	err := w.reconciler.reconcile(context.WithoutCancel(ctx), source, &entry)
	failed := w.finish(ctx, source, entry, err)
	return !failed || ctx.Err() == nil
}

// finish ends the work on a source. It reports whether publishing failed.
func (w *worker) finish(ctx context.Context, source events.Source, entry queueEntry, err error) bool {
	turn, waits := errors.AsType[*turnError](err)
	_, refused := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
		w.pending.done(source)
	case waits:
		w.pending.wait(source, entry, turn.after)
	case errors.Is(err, errUndecided):
		w.pending.wait(source, entry, doubtInterval)
	case refused:
		w.metrics.errors.Add(ctx, 1)
		w.log.ErrorContext(ctx, "an event is not valid; dropping it", "source", source.String(), "namespace", source.Namespace, "err", err)
		w.pending.drop(source, entry)
	case errors.Is(err, bus.ErrTooLarge):
		w.pending.wait(source, w.failed(ctx, source, entry, err), checkMost)
	default:
		w.pending.retry(source, w.failed(ctx, source, entry, err))
		return true
	}
	return false
}

// failed counts a failure to publish, and logs it unless the previous attempt had the same. It returns the entry for the next attempt.
func (w *worker) failed(ctx context.Context, source events.Source, entry queueEntry, err error) queueEntry {
	w.metrics.errors.Add(ctx, 1)
	if failure := err.Error(); failure != entry.failure {
		entry.failure = failure
		w.log.ErrorContext(ctx, "cannot publish an event; retrying", "source", source.String(), "namespace", source.Namespace, "err", err)
	}
	return entry
}
