package telemetry

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// clearEnvironment unsets the OpenTelemetry variables of the machine's own environment.
func clearEnvironment(t testing.TB) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_EXPORTER",
		"OTEL_TRACES_SAMPLER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_BSP_MAX_QUEUE_SIZE",
		"POD_NAME", "POD_NAMESPACE", "POD_UID",
	} {
		t.Setenv(name, "")
	}
}
