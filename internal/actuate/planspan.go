package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/workload"
)

// startPlan starts the span of a decision. Its parent is the newest of the changes; it is linked to all of them, and the others are
// linked to it, so that someone who looks at the trace of one of those finds what came of it.
func startPlan(ctx context.Context, tracer trace.Tracer, p *pending, w *workload.Workload) trace.Span {
	newest, others := newestOf(p)
	if newest != nil {
		ctx = newest.context(ctx)
	}
	links := linkToParent(ctx)
	for _, e := range others {
		links = append(links, trace.Link{SpanContext: e.span.SpanContext()})
	}
	_, span := tracer.Start(ctx, "plan", trace.WithLinks(links...), trace.WithAttributes(workloadAttributes(w.ID)...))
	for _, e := range others {
		e.span.AddLink(trace.Link{SpanContext: span.SpanContext()})
	}
	return span
}

// newestOf returns the event of the newest change of a workload, nil if it has none, and the other events.
func newestOf(p *pending) (newest *inFlightEvent, others []*inFlightEvent) {
	for _, c := range p.changes {
		for _, e := range c.events {
			switch {
			case newest == nil:
				newest = e
			case workload.Newer(e.delivery.Change.ResourceVersion, newest.delivery.Change.ResourceVersion):
				newest, others = e, append(others, newest)
			default:
				others = append(others, e)
			}
		}
	}
	return newest, others
}
