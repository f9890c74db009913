// Package program assembles the programs from their options, and runs them: Watcher, Actuator, Projector, and Reloader, which runs the first two in
// one process. It also sets up their logs, traces and metrics.
//
// Order: run sets up logs and telemetry, prepares the work, listens for probes and scrapes, and only then connects to NATS, which may take any time:
// a waiting program is alive, but not ready. The work begins once the streams and the identity of the cluster are verified. The shutdown runs in
// reverse order, each step within stopLimit.
//
// Failure: an error of any step ends the program with that error, after the earlier steps were undone.
//
// # Telemetry
//
// Guarantee: telemetry never blocks the work and never fails it. Undeliverable spans are dropped and counted. Only an invalid
// configuration is an error, at start.
//
//   - Traces are off, and cost almost nothing, until the standard OTEL_* environment variables name an exporter. Spans then wait in one
//     queue of OTEL_BSP_MAX_QUEUE_SIZE (2048). If it is full, a span is dropped and counted in keyturn.telemetry.spans with outcome
//     "dropped".
//   - Metrics are served at /metrics, and pushed if OTEL_METRICS_EXPORTER says so.
//   - Logs are lines of JSON, with trace_id, span_id and trace_flags if the context carries a span.
//   - Flushing at shutdown takes at most flushLimit for traces and again for metrics.
//
// Setup sets no OpenTelemetry global, so that several programs can run in one process. Bridge and CountRequests set globals: they are for
// programs that do not share their process.
//
// Attribute names come from one version of the semantic conventions, 1.43.0, the one the SDK uses, so that resources merge under one
// schema. Import go.opentelemetry.io/otel/semconv/v1.43.0 for them; when the SDK moves on, all imports move together.
package program

// Build describes a built command.
type Build struct {
	// Version is the version of the release, also for telemetry.
	Version string
	// SmallHeap is the heap size in bytes below which garbage is not collected, see keepSmall. 0 means that the program shares its process, as in a
	// test, so that it does not touch globals: the garbage collector, and the logs and metrics of client-go.
	SmallHeap uint64
}
