package plugin

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
)

func (p *Plugin) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this binary and of the programs of the installation.",
		Example: "  kubectl keyturn version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s\n\n", commands.BuildVersion(p.version))
			if err := p.open(cmd.Flags()); err != nil {
				return err
			}
			if err := p.find(cmd.Context()); err != nil {
				return err
			}
			programs, err := p.installed.programs(cmd.Context())
			if err != nil {
				return err
			}
			rows := [][]any{{"PROGRAM", "VERSION"}}
			for _, program := range programs {
				rows = append(rows, []any{program.Name, program.Version})
			}
			return inspect.Wide.WriteTable(out, rows)
		},
	}
}
