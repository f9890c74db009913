package plugin

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/inspect"
)

func (p *Plugin) historyCommand() *cobra.Command {
	var options inspect.HistoryOptions
	cmd := p.ofHistory(&options, func(ctx context.Context, history *inspect.History, reader *bus.Reader, out io.Writer) error {
		return history.Write(ctx, reader, out)
	})
	cmd.Use, cmd.Short = "history", "List changes and their outcomes."
	cmd.Example = "  kubectl keyturn history --since 2h\n" +
		"  kubectl keyturn history -n shop --workload deployment/web --verb failed,held\n" +
		"  kubectl keyturn history --source secret/db --follow"
	cmd.Flags().BoolVarP(&options.Follow, "follow", "f", false, "keep listing new events as they happen")
	addOutput(cmd, &options.Format, "; json and yaml have CloudEvents")
	return cmd
}

// ofHistory returns a command that shows the history selected by its flags, by default in the namespace of the context. The flags set the options.
func (p *Plugin) ofHistory(
	options *inspect.HistoryOptions, show func(context.Context, *inspect.History, *bus.Reader, io.Writer) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.validateTraceURL(); err != nil {
				return err
			}
			options.Cluster, options.TraceURL = p.cluster, p.traceURL
			history, err := inspect.NewHistory(*options, time.Now(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			reader, err := p.openReader(cmd.Context())
			if err != nil {
				return err
			}
			return show(cmd.Context(), history, reader, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	options.AddFlags(flags)
	addNamespace(flags, &options.Namespace, "only events in this `namespace`; empty means that of the context")
	p.addTraceURL(flags)
	p.addStream(flags)
	flags.BoolVarP(&p.allNamespaces, "all-namespaces", "A", false, "events of all namespaces")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	return cmd
}
