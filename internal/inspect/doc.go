// Package inspect is what the actuator's subcommands do: explain a workload, list the history, the clusters of a stream, and the dead
// letters. It reads the streams and, to explain, one workload; it writes text and changes nothing.
package inspect
