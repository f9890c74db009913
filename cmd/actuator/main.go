// The actuator rolls the workloads that depend on a changed source in its cluster.
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

// smallHeap is the heap of the actuator of a small cluster, in bytes: see program.Build.
const smallHeap = 32 << 20

const short = "Roll the workloads that depend on a changed Secret, ConfigMap or store secret."

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. Heap is SmallHeap of program.Build: smallHeap, and 0 in tests, which share their process.
func newCommand(heap uint64) *cobra.Command {
	a := program.NewActuator(version)
	cmd := commands.NewRoot("actuator", short, version)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: heap})
	}
	a.AddFlags(cmd.Flags())
	cmd.AddCommand(newReadyCommand())
	return cmd
}
