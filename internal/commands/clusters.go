package commands

import (
	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/inspect"
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
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			reader, disconnect, err := streams.OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.Clusters(cmd.Context(), reader, view, cmd.OutOrStdout())
		},
	}
	AddOutput(cmd, &view.Format, "", formats...)
	r.addStream(cmd.Flags())
	return cmd
}
