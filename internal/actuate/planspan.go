package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// startPlan starts the span of a decision. Its parent is the newest of the changes; it is linked to all of them, and the others are
// linked to it, so that someone who looks at the trace of one of those finds what came of it. Events whose place later ones have taken are
// linked to those.
func startPlan(ctx context.Context, tracer trace.Tracer, p *pending, w *workload.Workload) trace.Span {
	newest := newestOf(p)
	if newest != nil {
		ctx = newest.context(ctx)
	}
	links := events.LinkToParent(ctx)
	for _, c := range p.changes {
		for _, earlier := range c.earlier {
			links = append(links, trace.Link{SpanContext: earlier})
		}
		if c.event != newest {
			links = append(links, trace.Link{SpanContext: c.event.span.SpanContext()})
		}
	}
	_, span := tracer.Start(ctx, "plan", trace.WithLinks(links...))
	if span.IsRecording() {
		span.SetAttributes(workloadAttributes(w.ID)...)
	}
	for _, c := range p.changes {
		if c.event != newest {
			c.event.span.AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return span
}

// newestOf returns the event of the newest change of a workload, nil if it has none.
func newestOf(p *pending) *takenEvent {
	var newest *takenEvent
	for _, c := range p.changes {
		if newest == nil || workload.Newer(c.change.ResourceVersion, newest.change.ResourceVersion) {
			newest = c.event
		}
	}
	return newest
}
