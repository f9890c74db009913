// The actuator rolls the workloads that depend on a changed source in its cluster.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/process"
	"github.com/keyturn/keyturn/internal/program"
)

// version is set when a release is built.
var version = "dev"

// smallHeap is the heap of the actuator of a small cluster, in bytes: see process.Program. A third of it are buffers of the embedded NATS.
const smallHeap = 48 << 20

const short = "Roll the workloads that depend on a changed Secret, ConfigMap or store secret."

func main() {
	os.Exit(process.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. smallHeap is that of process.Program.
func newCommand(smallHeap uint64) *cobra.Command {
	a := program.NewActuator(version)
	cmd := &cobra.Command{
		Use: "actuator", Short: short, Long: short + "\n\n" + process.EnvironmentUsage,
		Args: cobra.NoArgs, Version: process.BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return process.Environment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: smallHeap})
		},
	}
	a.AddCommonFlags(cmd.PersistentFlags())
	a.AddRunFlags(cmd.Flags())
	cmd.AddCommand(newExplainCommand(a), newHistoryCommand(a), newCompareCommand(a), newClustersCommand(a), newDeadLettersCommand(a))
	return cmd
}
