package project

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/telemetry"
)

const (
	// kubeEventTimeout bounds the writing of a Kubernetes Event, and publishTimeout the publishing of an event.
	kubeEventTimeout = 5 * time.Second
	publishTimeout   = 10 * time.Second
)

// publisher is the part of a bus.Bus that the reporter needs.
type publisher interface {
	Cluster() string
	PublishProjection(ctx context.Context, p events.Projection) error
}

// reporter reports the result for a resource: in a span, a metric, a log line, a Kubernetes Event and an event on the stream.
type reporter struct {
	client  kubernetes.Interface
	bus     publisher
	metrics *metrics
	tracer  trace.Tracer
	log     *slog.Logger
	now     func() time.Time
}

// tell reports a result everywhere except on the stream, and returns the event to publish there.
func (r *reporter) tell(ctx context.Context, t *target, of result, causes []*cause, began time.Time) events.Projection {
	kind := trace.WithSpanKind(trace.SpanKindClient)
	ctx, span := r.tracer.Start(ctx, "project "+t.kind.name, trace.WithTimestamp(began), kind, trace.WithAttributes(
		semconv.K8SNamespaceName(t.namespace),
		attribute.String("keyturn.object.kind", t.kind.name),
		attribute.String("keyturn.object.name", t.name),
		attribute.String("keyturn.object.uid", t.uid),
		attribute.String("keyturn.outcome", string(of.reason.verb())),
		attribute.String("keyturn.reason", of.reason.String()),
	))
	if of.reason.verb() == events.VerbFailed {
		span.SetStatus(codes.Error, of.reason.String())
	}
	span.End()
	p := events.Projection{
		Cluster: r.bus.Cluster(), Verb: of.reason.verb(), ResourceVersion: cmp.Or(of.version, t.version), Time: r.now(),
		Trace: events.TraceFrom(ctx), Target: t.workload(), Reason: of.reason.String(), Message: of.message,
	}
	if len(causes) > 0 {
		p.Cause = causes[len(causes)-1].delivery.Change.ID()
	}
	for _, w := range t.wishes {
		p.Fields = append(p.Fields, events.ProjectedField{
			Path: w.path.String(), Source: "secret/" + w.secret, Key: w.key, ResourceVersion: of.versions[w.secret],
		})
	}
	r.metrics.count(ctx, of)
	level := slog.LevelInfo
	if of.reason.open() {
		level = slog.LevelWarn
	}
	r.log.Log(ctx, level, "resource processed", "resource", p.Target.String(), "namespace", t.namespace, "reason", p.Reason, "message", p.Message)
	r.tellKubernetes(ctx, t, p)
	return p
}

func (r *reporter) tellKubernetes(ctx context.Context, t *target, p events.Projection) {
	kind, why := corev1.EventTypeNormal, "Projected"
	if p.Verb != events.VerbApplied {
		kind, why = corev1.EventTypeWarning, "NotProjected"
	}
	annotations := map[string]string{}
	if p.Trace.Parent != "" {
		annotations[events.AnnotationTraceparent] = p.Trace.Parent
	}
	event := kube.Event{
		About: corev1.ObjectReference{
			APIVersion: t.kind.config.APIVersion, Kind: t.kind.config.Kind, Namespace: t.namespace, Name: t.name, UID: types.UID(t.uid),
		},
		Controller: "keyturn.dev/projector", Type: kind, Reason: why, Message: p.Reason + ": " + p.Message, Annotations: annotations, At: p.Time,
	}.Object()
	ctx, cancel := context.WithTimeout(ctx, kubeEventTimeout)
	defer cancel()
	if _, err := r.client.CoreV1().Events(t.namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		r.log.WarnContext(ctx, "kubernetes event not written", "resource", p.Target.String(), "namespace", t.namespace,
			"err", reduce("writing a kubernetes event", err, nil))
	}
}

// publish publishes an event on the stream. After an error, the call may be repeated. An invalid event is logged and dropped.
func (r *reporter) publish(ctx context.Context, p events.Projection) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := r.bus.PublishProjection(p.Trace.Context(ctx), p)
	if reject, ok := errors.AsType[*events.RejectError](err); ok {
		r.log.ErrorContext(ctx, "event of a projection is not valid", "resource", p.Target.String(), "err", reject)
		return nil
	}
	return err
}

type metrics struct{ projections metric.Int64Counter }

func (m *metrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&m.projections, "keyturn.projections", "{projection}",
			"Reports about the fields that resources want from Secrets: applied, skipped or failed.", "verb", "reason"),
	}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, telemetry.MakeInstruments(meter, m.instruments())
}

func (m *metrics) count(ctx context.Context, r result) {
	m.projections.Add(ctx, 1, metric.WithAttributes(
		attribute.String("verb", string(r.reason.verb())), attribute.String("reason", r.reason.String())))
}
