package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// newResource describes this process. In order of precedence, lowest first: the service, the pod's POD_NAME, POD_NAMESPACE and POD_UID,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME.
func newResource(ctx context.Context, service Service) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{
		semconv.ServiceName(service.Name),
		semconv.ServiceNamespace("keyturn"),
	}
	for _, optional := range []struct {
		key   attribute.Key
		value string
	}{
		{semconv.ServiceVersionKey, service.Version},
		{semconv.K8SClusterNameKey, service.Cluster},
		{semconv.K8SPodNameKey, env("POD_NAME")},
		{semconv.K8SNamespaceNameKey, env("POD_NAMESPACE")},
		{semconv.K8SPodUIDKey, env("POD_UID")},
		{semconv.ServiceInstanceIDKey, env("POD_UID")},
	} {
		if optional.value != "" {
			attrs = append(attrs, optional.key.String(optional.value))
		}
	}
	return resource.New(ctx,
		resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithTelemetrySDK(),
		resource.WithService(), // a random service.instance.id, for use outside a pod
		resource.WithAttributes(attrs...),
		resource.WithFromEnv(),
	)
}
