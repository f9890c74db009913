package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// commandTimeout bounds how long a command may take to reach NATS, and again to read from it.
const commandTimeout = 10 * time.Second

func newDeadLettersCommand(s *settings) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List dead-lettered events, with the reason.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit: %d, want 1 or more", limit)
			}
			bus, closeBus, err := s.openBus(cmd.Context())
			if err != nil {
				return err
			}
			defer closeBus()
			bounded, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
			defer cancel()
			letters, err := bus.DeadLetters(bounded, limit)
			if err != nil {
				return fmt.Errorf("reading the dead letters: %w", err)
			}
			if len(letters) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "There are no dead letters.")
				return nil
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "TIME\tREASON\tSUBJECT\tERROR")
			for _, letter := range letters {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", letter.Time.Format(time.RFC3339), letter.Reason, letter.Subject, letter.Error)
			}
			return table.Flush()
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum `number` of events to list, newest first")
	return cmd
}
