// Package program assembles the programs from their options: Watcher, Actuator, Projector, and Reloader, which runs the first two in one process.
package program

// Build describes a built command.
type Build struct {
	// Version is the version of the release.
	Version string
	// SmallHeap is as in process.Program.
	SmallHeap uint64
}
