package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
)

// publishTimeout is how long one try to publish takes at most. A try is repeated until it succeeds.
const publishTimeout = 10 * time.Second

// maxConflicts is how often in a row another watcher may be faster before this one takes a break.
const maxConflicts = 5

// next deals with one queued source. It is false when the queue was shut down.
func (w *Watcher) next(ctx context.Context, progress *health.Progress) bool {
	source, entry, ok := w.pending.take()
	if !ok {
		return false
	}
	progress.Busy()
	defer progress.Idle()

	// What was begun is finished when the program stops: it is bounded by publishTimeout.
	err := w.reconcile(context.WithoutCancel(ctx), source, entry)
	if err == nil {
		w.pending.done(source)
		return true
	}
	w.metrics.publishError(ctx)
	w.log.ErrorContext(ctx, "an event could not be published; it will be tried again",
		"source", source.String(), "namespace", source.Namespace, "err", err)
	w.pending.retry(source, entry)
	return true
}

// reconcile publishes what there is to say of a source.
func (w *Watcher) reconcile(ctx context.Context, source events.Source, noticed queueEntry) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for range maxConflicts {
		before := w.ledger.get(source)
		change, worthSaying := w.assessors[source.Kind](source, before, noticed)
		if !worthSaying {
			return nil
		}
		change.Cluster, change.Source, change.Time = w.options.Cluster, source, w.options.Now().UTC()
		var expected uint64
		if before != nil {
			expected = before.seq
		}
		err := w.publish(ctx, change, expected, noticed.at)
		if !errors.Is(err, events.ErrConflict) {
			return err
		}
		// Another watcher of this cluster was faster. What it said is what to compare with now.
		if err := w.refresh(ctx, source); err != nil {
			return err
		}
	}
	return fmt.Errorf("publishing %s: %w, %d times over", source, events.ErrConflict, maxConflicts)
}

// refresh reads the last event of one source from the stream.
func (w *Watcher) refresh(ctx context.Context, source events.Source) error {
	stored, err := w.bus.Last(ctx, events.Subject(w.options.Cluster, source))
	if errors.Is(err, events.ErrNotFound) {
		w.ledger.set(source, nil)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	w.remember(ctx, stored)
	return nil
}

// startPublish begins the span in whose context the event is made.
func startPublish(ctx context.Context, tracer trace.Tracer, change events.Change) (context.Context, trace.Span) {
	return tracer.Start(ctx, "publish "+events.SubjectTemplate(change.Source.Kind), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(change.SpanAttributes()...),
		trace.WithAttributes(semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("publish")))
}

// publish publishes the change as the successor of the event with the sequence expected. The trace that the change comes with
// is that of what led to it; where there is one, what happens here is a part of it.
func (w *Watcher) publish(ctx context.Context, change events.Change, expected uint64, noticed time.Time) error {
	tracer := w.options.Tracer
	if change.ChangedAt == "" {
		// Nothing comes of a source that is seen for the first time, and the first list has as many of them as there are.
		tracer = noop.Tracer{}
	}
	ctx = change.Trace.Context(ctx)
	ctx, detect := tracer.Start(ctx, "detect "+string(change.Source.Kind), trace.WithTimestamp(noticed),
		trace.WithAttributes(change.ObjectAttributes()...))
	defer detect.End()

	ctx, span := startPublish(ctx, tracer, change)
	defer span.End()
	change.Trace = events.TraceFrom(ctx)
	seq, err := w.bus.PublishChange(ctx, change, expected)
	w.metrics.tried(ctx, change.Source.Kind, err)
	if errors.Is(err, events.ErrConflict) {
		return err
	}
	if err != nil {
		span.SetStatus(codes.Error, "not published")
		span.SetAttributes(semconv.ErrorType(err))
		return fmt.Errorf("publishing %s of %s: %w", change.Verb, change.Source, err)
	}
	entry, err := newLast(seq, change)
	if err != nil {
		return fmt.Errorf("keeping what was published of %s: %w", change.Source, err)
	}
	w.ledger.set(change.Source, entry)
	w.notePublished(change.Source, entry)
	w.metrics.published(ctx, change)
	if change.Verb != events.VerbObserved {
		w.log.InfoContext(ctx, "a change was published", "source", change.Source.String(), "namespace", change.Source.Namespace,
			"verb", string(change.Verb), "keys", change.Changed, "seq", seq)
	}
	return nil
}
