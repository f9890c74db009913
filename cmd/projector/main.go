// The projector copies values of Secrets into fields of custom resources that cannot refer to a Secret, and keeps them equal.
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

// smallHeap is the heap of the projector of a small cluster, in bytes: see program.Build.
const smallHeap = 16 << 20

const short = "Copy values of Secrets into fields of custom resources that cannot refer to a Secret, and keep them equal."

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. Heap is SmallHeap of program.Build: smallHeap, and 0 in tests, which share their process.
func newCommand(heap uint64) *cobra.Command {
	p := program.NewProjector(version)
	cmd := commands.NewRoot("projector", short, version)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: heap})
	}
	p.AddFlags(cmd.Flags())
	return cmd
}
