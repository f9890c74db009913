package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/telemetry"
)

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
