package actuate

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// workloadNames has the attribute for the name of each kind of workload.
var workloadNames = map[string]attribute.Key{
	"deployment":  semconv.K8SDeploymentNameKey,
	"statefulset": semconv.K8SStatefulSetNameKey,
	"daemonset":   semconv.K8SDaemonSetNameKey,
	"cronjob":     semconv.K8SCronJobNameKey,
	"job":         semconv.K8SJobNameKey,
	"rollout":     "k8s.rollout.name", // The semantic conventions have none.
}

func workloadAttributes(id events.Workload) []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.K8SNamespaceName(id.Namespace), attribute.String("keyturn.workload.kind", id.Kind)}
	if key, ok := workloadNames[id.Kind]; ok {
		attributes = append(attributes, key.String(id.Name))
	}
	return attributes
}

// failRequest marks the span of a request that failed. The message is in the log only: an admission webhook may have worded it.
func failRequest(span trace.Span, err error) {
	kind := semconv.ErrorType(err)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		kind = semconv.ErrorTypeKey.String(string(status.Status().Reason))
		span.SetAttributes(semconv.HTTPResponseStatusCode(int(status.Status().Code)))
	}
	span.SetAttributes(kind)
	span.SetStatus(codes.Error, "not patched")
}

// reasonKey is the attribute of a reason.
const reasonKey = attribute.Key("keyturn.reason")

func addDecision(span trace.Span, decision plan.Decision) {
	if !span.IsRecording() {
		return // Nobody traces, or not this change: the attributes need not be made.
	}
	span.AddEvent(decision.Reason.String(), trace.WithAttributes(
		attribute.String("keyturn.source", decision.Source.String()),
		reasonKey.String(decision.Reason.String()),
		attribute.StringSlice("keyturn.keys", decision.Keys),
	))
}

// startPlan starts the span of a decision below the newest of the changes. All changes are linked to it, also those that were superseded.
func startPlan(ctx context.Context, tracer trace.Tracer, p *pending, w *workload.Workload) trace.Span {
	var newest *takenEvent
	for _, c := range p.changes {
		if newest == nil || events.Newer(c.change.ResourceVersion, newest.change.ResourceVersion) {
			newest = c.event
		}
	}
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
