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

// workloadNames contains the attribute for the name of each kind of workload.
var workloadNames = map[string]attribute.Key{
	"deployment":  semconv.K8SDeploymentNameKey,
	"statefulset": semconv.K8SStatefulSetNameKey,
	"daemonset":   semconv.K8SDaemonSetNameKey,
	"cronjob":     semconv.K8SCronJobNameKey,
	"job":         semconv.K8SJobNameKey,
	"rollout":     "k8s.rollout.name", // The semantic conventions have no such attribute.
}

func workloadAttributes(id events.Workload) []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.K8SNamespaceName(id.Namespace), attribute.String("keyturn.workload.kind", id.Kind)}
	if key, ok := workloadNames[id.Kind]; ok {
		attributes = append(attributes, key.String(id.Name))
	}
	return attributes
}

// failRequest marks the span of a failed request. The message is only in the log, because it may come from an admission webhook.
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
		return // Skip the attributes if this change is not traced.
	}
	span.AddEvent(decision.Reason.String(), trace.WithAttributes(
		attribute.String("keyturn.source", decision.Source.String()),
		reasonKey.String(decision.Reason.String()),
		attribute.StringSlice("keyturn.keys", decision.Keys),
	))
}

// startPlan starts the span of a decision as a child of the newest change. It links all changes, including superseded ones.
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
