package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

func (p *Plugin) explainCommand() *cobra.Command {
	var format inspect.Format
	var namespace string
	cmd := &cobra.Command{
		Use:   "explain <kind>/<name>",
		Short: "Show what a workload depends on, what it was last rolled for, what it waits for, and what would happen now, with the reason.",
		Example: "  kubectl keyturn explain deployment/web\n" +
			"  kubectl keyturn explain statefulset/db -n shop --output json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := p.explain(cmd.Context(), args[0], namespace)
			if err != nil {
				return err
			}
			return report.Write(cmd.OutOrStdout(), format)
		},
	}
	flags := cmd.Flags()
	addNamespace(flags, &namespace, "`namespace` of the workload; empty means that of the context")
	addOutput(cmd, &format, "; json and yaml have the fields of the events as they are")
	p.addTraceURL(flags)
	p.addStream(flags)
	return cmd
}

// explain returns the explanation of a workload, with the settings of the installation.
func (p *Plugin) explain(ctx context.Context, workload, namespace string) (*inspect.Report, error) {
	settings := &p.settings
	kinds, err := settings.Kinds()
	if err := errors.Join(p.validateTraceURL(), settings.ValidatePolicy(), err); err != nil {
		return nil, err
	}
	reading, err := settings.Reading(kinds)
	if err != nil {
		return nil, err
	}
	reader, err := p.openReader(ctx)
	if err != nil {
		return nil, err
	}
	return inspect.Explain(ctx, inspect.ExplainOptions{
		Origins: events.Origins{Cluster: p.cluster, StoresFrom: settings.StoreClusters()}, Kinds: kinds, Reading: reading, Policy: settings.Policy(),
		Namespaces: settings.Namespaces, IgnoreNamespaces: settings.IgnoreNamespaces, ReloadDelay: settings.ReloadInPlace, DryRun: settings.DryRun,
		Posts: settings.Reloader.WebhookURL != "", Unknown: p.installed.unknown(), Clients: p.clients(), Now: time.Now(),
		TraceURL: p.traceURL,
	}, reader, workload, namespace)
}
