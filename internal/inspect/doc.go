// Package inspect implements the actuator's subcommands: explain a workload, list the history, compare it with what Reloader did, list the
// clusters of a stream, list dead letters, and request their replay. It reads the streams and workloads, and writes text or a page of HTML.
// It changes nothing except through that request.
package inspect
