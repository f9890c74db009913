package forcesync

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Kind is the kind of an ExternalSecret in outcomes and spans, among the kinds of workloads.
const Kind = "externalsecret"

// clusterKind is the kind of a ClusterExternalSecret in spans.
const clusterKind = "clusterexternalsecret"

// report reports the end of a sync, also as a span event and a log line.
func (y *Syncer) report(ctx context.Context, s *pendingSync, why reason) {
	verdict, now, source := verdicts[why], y.host.Now(), s.change.Source.String()
	if s.isOfTemplate() {
		verdict.sentence = strings.Replace(verdict.sentence, "the secret in the store", "its template", 1)
	}
	spanCtx := s.context(ctx)
	outcome := events.Outcome{
		Cluster: y.host.Cluster, Verb: verdict.verb, Workload: identify(s.seen), ResourceVersion: s.seen.ResourceVersion,
		Time: now.UTC(), Cause: s.change.ID(), Trace: events.TraceFrom(spanCtx), Reason: string(why), Message: verdict.sentence,
		Sources: []events.OutcomeSource{{
			Source: source, Fingerprint: s.change.Fingerprint, ResourceVersion: s.change.ResourceVersion, Event: s.change.ID(),
		}},
	}
	y.host.Report(ctx, outcome, verdict.event, now.Sub(s.change.Time))
	s.process.AddEvent(outcome.Reason, trace.WithAttributes(append(identityAttributes(outcome.Workload),
		attribute.String("keyturn.outcome", string(outcome.Verb)), attribute.String("keyturn.reason", outcome.Reason))...))
	y.host.Log.InfoContext(spanCtx, "externalsecret sync finished", "externalsecret", s.seen.Name, "namespace", s.seen.Namespace,
		"source", source, "verb", string(outcome.Verb), "reason", outcome.Reason, "repeat", s.repeat)
}

// identify returns an ExternalSecret as the object of an outcome.
func identify(es *externalsecret.ExternalSecret) events.Workload {
	return events.Workload{Kind: Kind, Namespace: es.Namespace, Name: es.Name, UID: string(es.UID)}
}

// identityAttributes returns the span attributes of an ExternalSecret or a ClusterExternalSecret.
func identityAttributes(id events.Workload) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.K8SNamespaceName(id.Namespace),
		attribute.String("keyturn.workload.kind", id.Kind), attribute.String("keyturn."+id.Kind+".name", id.Name),
	}
}
