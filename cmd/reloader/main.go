// The reloader takes the flags and the environment of Stakater's Reloader, and runs the watcher and the actuator in one process.
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

// smallHeap is the heap of a small cluster, in bytes: see program.Build. It is that of the watcher and the actuator together, which do not
// have their bursts at the same time.
const smallHeap = 64 << 20

const short = "Roll workloads on changes of Secrets and ConfigMaps, with the flags of Stakater's Reloader 1.4."

const long = short + `

It runs the watcher and the actuator in one process. A flag for something that it cannot do is refused, with what to use instead.

` + commands.EnvironmentUsage + " KUBERNETES_NAMESPACE and KUBECONFIG mean what they mean to Reloader."

func main() {
	os.Exit(commands.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. Heap is SmallHeap of program.Build: smallHeap, and 0 in tests, which share their process.
func newCommand(heap uint64) *cobra.Command {
	flags := defaultFlags()
	cmd := commands.NewRoot("reloader", short, version)
	cmd.Long, cmd.Args = long, cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags.Arguments = args
		both, err := translate(flags, readEnvironment(os.Getenv), version)
		if err != nil {
			return err
		}
		return both.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: heap})
	}
	flags.addTo(cmd.Flags())
	return cmd
}
