package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/program"
)

const reloaderShort = "Roll workloads in one pod, with the flags of Stakater's Reloader 1.4."

const reloaderLong = reloaderShort + `

It runs the watcher and the actuator in one process. A flag for something that it cannot do is refused, with what to use instead.

` + commands.EnvironmentUsage + " KUBERNETES_NAMESPACE and KUBECONFIG mean what they mean to Reloader."

// newReloaderCommand returns the program with Reloader's flags. Heap is SmallHeap of program.Build: bothHeap, and 0 in tests, which share their
// process.
func newReloaderCommand(heap uint64) *cobra.Command {
	flags := defaultFlags()
	cmd := commands.NewRoot("reloader", reloaderShort, version)
	cmd.Long, cmd.Args = reloaderLong, cobra.ArbitraryArgs
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
