package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/program"
)

func newCompareCommand(a *program.Actuator) *cobra.Command {
	var r reading
	var options inspect.CompareOptions
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare what a dry run would have rolled with what Reloader did roll, with the reason.",
		Example: "  actuator compare --cluster prod --since 168h\n" +
			"  actuator compare --cluster prod -n shop",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			typed, errTyped := a.Process.Kube.Client()
			custom, errCustom := a.Process.Kube.Dynamic()
			if err := errors.Join(errTyped, errCustom); err != nil {
				return err
			}
			options.Namespaces = a.Actuate.Namespaces
			options.Cluster, options.Clients.Typed, options.Clients.Dynamic = a.Process.Cluster, typed, custom
			comparison, err := inspect.NewComparison(options, time.Now())
			if err != nil {
				return err
			}
			reader, disconnect, err := r.from(a).OpenReader(cmd.Context())
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
	r.streams.AddStreamFlag(flags)
	return cmd
}
