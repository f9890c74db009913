package commands

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/inspect"
)

// History returns the command that lists changes and their outcomes.
func History(program *Program) *cobra.Command {
	options := inspect.HistoryOptions{View: inspect.View{Narrow: program.Narrow}}
	cmd := OfHistory(program, &options, func(ctx context.Context, history *inspect.History, reader *bus.Reader, out io.Writer) error {
		return history.Write(ctx, reader, out)
	})
	cmd.Use, cmd.Short = "history", "List changes and their outcomes."
	cmd.Example = "  actuator history --cluster prod --since 2h\n" +
		"  actuator history --cluster prod -n shop --workload deployment/web --verb failed,held\n" +
		"  actuator history --cluster prod --source secret/db -n shop --follow\n" +
		"  actuator history --cluster hub --stream FLEET --clusters prod-eu,prod-us --verb rotated,failed"
	cmd.Flags().BoolVarP(&options.Follow, "follow", "f", false, "keep listing new events as they happen")
	AddOutput(cmd, &options.View.Format, "; json and yaml have CloudEvents")
	return cmd
}

// OfHistory returns a command that shows the history that its flags select. The flags set the options.
func OfHistory(
	program *Program, options *inspect.HistoryOptions, show func(context.Context, *inspect.History, *bus.Reader, io.Writer) error,
) *cobra.Command {
	r := reading{program: program}
	cmd := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			options.Cluster, options.TraceURL = streams.Cluster, r.traceURL
			history, err := inspect.NewHistory(*options, time.Now(), cmd.ErrOrStderr())
			if err := errors.Join(err, r.validateTraceURL()); err != nil {
				return err
			}
			reader, disconnect, err := streams.OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return show(cmd.Context(), history, reader, cmd.OutOrStdout())
		},
	}
	options.AddFlags(cmd.Flags())
	r.addTraceURL(cmd.Flags())
	r.addStream(cmd.Flags())
	return cmd
}
