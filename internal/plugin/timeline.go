package plugin

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
)

// timeline returns the command that draws the history.
func (p *Plugin) timeline(program *commands.Program) *cobra.Command {
	cmd := p.history(program)
	cmd.Use, cmd.Short = "timeline", "Draw the rotations of the history as a page of HTML."
	cmd.Example = "  kubectl keyturn timeline --since 1h --file rotations.html\n" +
		"  kubectl keyturn timeline -n shop --verb failed,held > rotations.html"
	flags := cmd.Flags()
	for _, name := range []string{"output", "follow"} {
		flags.Lookup(name).Hidden = true
	}
	var file string
	flags.StringVar(&file, "file", "", "`file` to write; empty writes to the standard output")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"output", "follow"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("timeline has no --%s: it writes one page of HTML", name)
			}
		}
		return cobra.NoArgs(cmd, args)
	}
	history := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.Set("output", "html"); err != nil {
			return err
		}
		if file == "" {
			return history(cmd, args)
		}
		var page bytes.Buffer
		cmd.SetOut(&page)
		if err := history(cmd, args); err != nil {
			return err
		}
		if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		return nil
	}
	return cmd
}
