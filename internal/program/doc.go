// Package program assembles the programs from their options, for the commands: Watcher, Actuator, Projector, and Reloader, which runs
// the first two in one process.
package program

// Build describes a built command.
type Build struct {
	// Version is that of the release.
	Version string
	// SmallHeap is that of process.Program.
	SmallHeap uint64
}
