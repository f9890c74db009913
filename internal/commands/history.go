package commands

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
)

// History returns the command that lists changes and their outcomes.
func History(program *Program) *cobra.Command {
	r := reading{program: program}
	options := inspect.HistoryOptions{Narrow: program.Narrow}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List changes and their outcomes, or draw them.",
		Example: "  actuator history --cluster prod --since 2h\n" +
			"  actuator history --cluster prod -n shop --workload deployment/web --verb failed,held\n" +
			"  actuator history --cluster prod --source secret/db -n shop --follow\n" +
			"  actuator history --cluster hub --stream FLEET --clusters prod-eu,prod-us --verb rotated,failed\n" +
			"  actuator history --cluster prod -n shop --since 1h --output html > rotations.html",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			options.Cluster, options.TraceURL = streams.Cluster, r.traceURL
			history, err := inspect.NewHistory(options, time.Now(), cmd.ErrOrStderr())
			if err := errors.Join(err, r.validateTraceURL()); err != nil {
				return err
			}
			reader, disconnect, err := streams.OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return history.Write(cmd.Context(), reader, cmd.OutOrStdout())
		},
	}
	options.AddFlags(cmd.Flags())
	AddOutput(cmd, &options.Output, "; json and yaml have CloudEvents, and html is a page that draws whole rotations",
		append(slices.Clone(formats), inspect.HTML)...)
	r.addTraceURL(cmd.Flags())
	r.addStream(cmd.Flags())
	return cmd
}
