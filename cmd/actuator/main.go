// The actuator rolls the workloads that depend on a changed source in its cluster.
package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/internal/telemetry"
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

// newReadyCommand returns the command that waits for pods to be ready, for `helm test`.
func newReadyCommand() *cobra.Command {
	patience := 30 * time.Second
	cmd := &cobra.Command{
		Use:     "ready HOST:PORT...",
		Short:   "Wait until /readyz reports ready at every address of each host.",
		Example: "  actuator ready keyturn-watcher-ready.keyturn-system.svc:9440",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, hosts []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return telemetry.Await(ctx, time.Second, hosts...)
		},
	}
	cmd.Flags().DurationVar(&patience, "wait", patience, "how long to wait; after that, an error names what is not ready, and why")
	return cmd
}
