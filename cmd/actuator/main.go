// The actuator rolls the workloads that depend on a changed source in its cluster.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/internal/workload"
)

// version is set when a release is built.
var version = "dev"

// smallHeap is the heap of the actuator of a small cluster, in bytes: see program.Build. A third of it are buffers of the embedded NATS.
const smallHeap = 48 << 20

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
	a.AddCommonFlags(cmd.PersistentFlags())
	a.AddRunFlags(cmd.Flags())
	reads := readProgram(a)
	cmd.AddCommand(
		commands.Explain(reads), commands.History(reads), commands.Compare(reads), commands.Clusters(reads), commands.DeadLetters(reads),
		commands.Ready(),
	)
	return cmd
}

// readProgram returns what the commands read with.
func readProgram(a *program.Actuator) *commands.Program {
	return &commands.Program{
		Settings: &a.Actuate,
		Clients: func() (workload.Clients, error) {
			typed, errTyped := a.Process.Kube.Client()
			custom, errCustom := a.Process.Kube.Dynamic()
			return workload.Clients{Typed: typed, Dynamic: custom}, errors.Join(errTyped, errCustom)
		},
		Streams: func(context.Context) (inspect.Streams, error) {
			return inspect.Streams{Connect: a.Process.NATS, Cluster: a.Process.Cluster}, nil
		},
	}
}
