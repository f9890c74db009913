// The watcher publishes an event for each change of a source in its cluster.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/program"
)

// version is set when a release is built.
var version = "dev"

// smallHeap is the heap of the watcher of a small cluster, in bytes: see program.Build.
const smallHeap = 20 << 20

const short = "Publish an event for each change of a source: a Secret, a ConfigMap, or an object that writes them."

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. Heap is SmallHeap of program.Build: smallHeap, and 0 in tests, which share their process.
func newCommand(heap uint64) *cobra.Command {
	w := program.NewWatcher(version)
	cmd := commands.NewRoot("watcher", short, version)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return w.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: heap})
	}
	w.AddFlags(cmd.Flags())
	return cmd
}
