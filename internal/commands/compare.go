package commands

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
)

// Compare returns the command that compares a dry run with Reloader.
func Compare(program *Program) *cobra.Command {
	r := reading{program: program}
	var options inspect.CompareOptions
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare what Keyturn rolled, or would roll in a dry run, with what Reloader rolled, and say why.",
		Example: "  actuator compare --cluster prod --since 168h\n" +
			"  actuator compare --cluster prod -n shop",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Clients, err = program.Clients(); err != nil {
				return err
			}
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			options.Namespaces, options.Cluster = program.Settings.Namespaces, streams.Cluster
			comparison, err := inspect.NewComparison(options, time.Now())
			if err != nil {
				return err
			}
			reader, disconnect, err := streams.OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return comparison.Write(cmd.Context(), reader, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&options.Namespace, "namespace", "n", "", "only workloads in this `namespace`; empty means all")
	flags.StringVar(&options.Since, "since", "24h",
		"start of the comparison: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z; empty means all that the stream keeps")
	flags.BoolVar(&options.Jobs, "recreate-jobs", false, "also compare Jobs, for an actuator with --recreate-jobs")
	r.addStream(flags)
	return cmd
}
