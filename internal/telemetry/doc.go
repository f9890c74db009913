// Package telemetry is what both programs share around their work: logs, traces, metrics, health, flags and exit.
//
// The guarantee: telemetry never holds up the work and never fails it. What cannot be delivered is dropped and counted;
// only a configuration that cannot be understood is an error, and it is one at start.
//
//   - Traces are off, and cost next to nothing, until the standard OTEL_* environment variables name an exporter. Spans
//     then wait in one queue of OTEL_BSP_MAX_QUEUE_SIZE (2048); a span that finds it full is dropped and counted in
//     keyturn.telemetry.spans with outcome "dropped". No span ever blocks its caller.
//   - Metrics are read from /metrics, and pushed where OTEL_METRICS_EXPORTER says so.
//   - Logs are lines of JSON with trace_id, span_id and trace_flags at the top level wherever a span is in the context.
//   - Flushing at the end takes at most flushLimit for each of traces and metrics, whatever the receiver does.
//
// Everything is handed over, nothing is reached for: Setup sets no OpenTelemetry global, so that several programs can
// run in one process. Bridge is the exception, and is for main alone.
//
// Names of attributes come from one version of the semantic conventions, 1.43.0, the one which the SDK itself uses, so
// that resources merge under one schema. Whoever needs such a name imports go.opentelemetry.io/otel/semconv/v1.43.0;
// when the SDK moves on, all imports move together.
//
// Nothing in this package sees a secret. Errors of checks are shown on the health port: they must hold none either.
package telemetry
