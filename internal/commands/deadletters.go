package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
)

// DeadLetters returns the command that lists dead-lettered events.
func DeadLetters(program *Program) *cobra.Command {
	r, view := reading{program: program}, inspect.View{Narrow: program.Narrow}
	var limit int
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List dead-lettered events, with the reason.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit: %d, want 1 or more", limit)
			}
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			bus, disconnect, err := streams.OpenBus(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.DeadLetters(cmd.Context(), bus, limit, view, cmd.OutOrStdout())
		},
	}
	AddOutput(cmd, &view.Format, "", formats...)
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum `number` of events to list; older ones are left out")
	return cmd
}
