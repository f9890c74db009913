// Package inspect implements the actuator's subcommands: explain a workload, list the history, compare it with what Reloader did, list the
// clusters of a stream, and list dead letters. It reads the streams and workloads, and writes text. It changes nothing.
package inspect
