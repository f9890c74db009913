package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// Clusters returns the command that lists the clusters in a stream.
func Clusters(program *Program) *cobra.Command {
	r, view := reading{program: program}, inspect.View{Narrow: program.Narrow}
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters in a stream, with replication lag and claimed identity.",
		Example: "  actuator clusters --cluster hub --stream FLEET",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, _, disconnect, err := r.open(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.Clusters(cmd.Context(), reader, view, cmd.OutOrStdout())
		},
	}
	AddOutput(cmd, &view.Format, "")
	r.addStream(cmd.Flags())
	return cmd
}

// Compare returns the command that compares a dry run with Reloader.
func Compare(program *Program) *cobra.Command {
	r := reading{program: program}
	var options inspect.CompareOptions
	var since string
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare what Keyturn rolled, or would roll in a dry run, with what Reloader rolled, and say why.",
		Example: "  actuator compare --cluster prod --since 168h\n" +
			"  actuator compare --cluster prod -n shop",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Since, err = inspect.ParseSince(since, time.Now()); err != nil {
				return err
			}
			if options.Clients, err = program.Clients(); err != nil {
				return err
			}
			reader, cluster, disconnect, err := r.open(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			options.Namespaces, options.Cluster = program.Settings.Namespaces, cluster
			return inspect.Compare(cmd.Context(), options, reader, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&options.Namespace, "namespace", "n", "", "only workloads in this `namespace`; empty means all")
	flags.StringVar(&since, "since", "24h",
		"start of the comparison: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z; empty means all that the stream keeps")
	flags.BoolVar(&options.Jobs, "recreate-jobs", false, "also compare Jobs, for an actuator with --recreate-jobs")
	r.addStream(flags)
	return cmd
}

// DeadLetters returns the command that lists dead-lettered events.
func DeadLetters(program *Program) *cobra.Command {
	view := inspect.View{Narrow: program.Narrow}
	var limit int
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List dead-lettered events, with the reason.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit: %d, want 1 or more", limit)
			}
			streams, err := program.Streams(cmd.Context())
			if err != nil {
				return err
			}
			b, disconnect, err := streams.OpenBus(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.DeadLetters(cmd.Context(), b, limit, view, cmd.OutOrStdout())
		},
	}
	AddOutput(cmd, &view.Format, "")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum `number` of events to list; older ones are left out")
	return cmd
}

// Ready returns the command that waits for pods to be ready, for `helm test`.
func Ready() *cobra.Command {
	patience := 30 * time.Second
	cmd := &cobra.Command{
		Use:     "ready HOST:PORT...",
		Short:   "Wait until /readyz answers that it is ready at every address of each host.",
		Example: "  actuator ready keyturn-watcher-ready.keyturn-system.svc:9440",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, hosts []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return telemetry.Await(ctx, time.Second, hosts...)
		},
	}
	cmd.Flags().DurationVar(&patience, "wait", patience, "How long to wait. The error then says what is not ready, and why.")
	return cmd
}
