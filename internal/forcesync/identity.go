package forcesync

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Kind is the kind of an ExternalSecret in outcomes and spans, among the kinds of workloads.
const Kind = "externalsecret"

// clusterKind is the kind of a ClusterExternalSecret in spans.
const clusterKind = "clusterexternalsecret"

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
