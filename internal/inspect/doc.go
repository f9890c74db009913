// Package inspect is what the actuator's subcommands do: explain a workload, list the history, compare it with what Reloader did, list the
// clusters of a stream, and the dead letters, and ask for a replay of these. It reads the streams and workloads; it writes text, or a page of
// HTML, and changes nothing but by that request.
package inspect
