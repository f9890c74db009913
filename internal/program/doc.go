// Package program assembles the programs from their options, and runs them: Watcher, Actuator, Projector, and Reloader, which runs the first two in
// one process.
//
// Order: run sets up logs and telemetry, prepares the work, listens for probes and scrapes, and only then connects to NATS. That may take
// any time: a program that waits is alive, but not ready. The work begins when the streams and the identity of the cluster are verified.
// Shutdown runs in reverse order, each step within stopLimit.
//
// Failure: an error of any step ends the program with that error, after the steps before it were undone.
package program

// Build describes a built command.
type Build struct {
	// Version is the version of the release, also for telemetry.
	Version string
	// SmallHeap is the heap in bytes below which garbage is not collected, see keepSmall. 0 means that the program shares its process, as in
	// a test: it then does not touch the globals of the process: the garbage collector, and the logs and metrics of client-go.
	SmallHeap uint64
}
