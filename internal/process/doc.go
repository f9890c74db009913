// Package process has what the programs share around their work: the wiring from flags to a running program (Run), the exit
// code (Main), flags and environment, shutdown in reverse order, and memory.
//
// Order: Run sets up logs and telemetry, prepares the work, listens for probes and scrapes, and only then connects to NATS. That may take
// any time: a program that waits is alive, but not ready. The work begins when the streams and the identity of the cluster are verified.
// Shutdown runs in reverse order, each step within stopLimit.
//
// Failure: an error of any step ends the program with that error, after the steps before it were undone.
package process
