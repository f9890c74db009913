package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// changePublisher publishes one event as the successor of another. A bus.Bus implements it.
type changePublisher interface {
	PublishChange(ctx context.Context, change events.Change, expected uint64) (uint64, error)
}

// publisher publishes events and records them in the ledger.
type publisher struct {
	bus      changePublisher
	inFlight *bus.InFlight // receives the duration of each response
	ledger   *ledger
	metrics  *metrics
	tracer   trace.Tracer
	now      func() time.Time
	log      *slog.Logger
}

// publish publishes the change as the successor of the event with the sequence expected. If the change has the trace of its cause, the spans belong
// to that trace.
func (p *publisher) publish(ctx context.Context, change events.Change, expected uint64, noticed time.Time) error {
	tracer := p.tracer
	if change.ChangedAt == "" {
		// The first event of a source has no effect, and the first list leads to one for every source.
		tracer = noop.Tracer{}
	}
	ctx = change.Trace.Context(ctx)
	ctx, detect := tracer.Start(ctx, "detect "+string(change.Source.Kind), trace.WithTimestamp(noticed))
	defer detect.End()
	if detect.IsRecording() {
		detect.SetAttributes(change.ObjectAttributes()...)
	}

	ctx, span := tracer.Start(ctx, "publish "+events.SubjectTemplate(change.Source.Kind), trace.WithSpanKind(trace.SpanKindProducer))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(change.SpanAttributes()...)
		span.SetAttributes(semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("publish"))
	}
	change.Trace = events.TraceFrom(ctx)
	began := p.now()
	seq, err := p.bus.PublishChange(ctx, change, expected)
	p.inFlight.Answered(began, err)
	p.metrics.tried(ctx, change.Source.Kind, err)
	if errors.Is(err, bus.ErrConflict) {
		return err
	}
	if err != nil {
		span.SetStatus(codes.Error, "not published")
		span.SetAttributes(semconv.ErrorType(err))
		return fmt.Errorf("publishing %s of %s: %w", change.Verb, change.Source, err)
	}
	entry, err := kinds.NewLastEvent(seq, change)
	if err != nil {
		return fmt.Errorf("keeping the published event of %s: %w", change.Source, err)
	}
	p.ledger.set(change.Source, entry)
	p.metrics.published(ctx, change)
	if change.Verb != events.VerbObserved {
		p.log.InfoContext(ctx, "change published", "source", change.Source.String(), "namespace", change.Source.Namespace,
			"verb", string(change.Verb), "keys", change.Changed, "seq", seq)
	}
	return nil
}
