package main

import (
	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/program"
)

func newClustersCommand(a *program.Actuator) *cobra.Command {
	var r reading
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters in a stream, with replication lag and claimed identity.",
		Example: "  actuator clusters --cluster hub --stream FLEET",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, disconnect, err := r.from(a).OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.Clusters(cmd.Context(), reader, cmd.OutOrStdout())
		},
	}
	r.streams.AddStreamFlag(cmd.Flags())
	return cmd
}
