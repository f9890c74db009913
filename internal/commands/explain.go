package commands

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

// Explain returns the command that explains a workload.
func Explain(program *Program) *cobra.Command {
	r, settings := reading{program: program}, program.Settings
	options := inspect.ExplainOptions{View: inspect.View{Narrow: program.Narrow}}
	var namespace, webhook string
	cmd := &cobra.Command{
		Use:   "explain <kind>/<name>",
		Short: "Show what a workload depends on, what it was last rolled for, what it waits for, and what would happen now, with the reason.",
		Example: "  actuator explain deployment/web -n shop --cluster prod\n" +
			"  actuator explain deployment/web -n shop --cluster prod --kubeconfig prod.kubeconfig --stream FLEET",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := errors.Join(r.validateTraceURL(), settings.ValidatePolicy())
			if err != nil {
				return err
			}
			if options.Kinds, err = settings.Kinds(); err != nil {
				return err
			}
			if options.Reading, err = settings.Reading(options.Kinds); err != nil {
				return err
			}
			options.Policy, options.ReloadDelay = settings.Policy(), settings.ReloadDelay
			options.Namespaces, options.IgnoreNamespaces, options.DryRun = settings.Namespaces, settings.IgnoreNamespaces, settings.DryRun
			options.Posts = webhook != ""
			if options.Clients, err = program.Clients(); err != nil {
				return err
			}
			reader, cluster, disconnect, err := r.open(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			if program.Unknown != nil {
				options.Unknown = program.Unknown()
			}
			options.Now, options.TraceURL = time.Now(), r.traceURL
			options.Origins = events.Origins{Cluster: cluster, StoresFrom: settings.StoresFrom}
			return inspect.Explain(cmd.Context(), options, reader, args[0], namespace, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "default", "`namespace` of the workload")
	AddOutput(cmd, &options.View.Format, "; json and yaml have the fields of the events as they are")
	addDecisionFlags(flags, settings)
	flags.StringVar(&webhook, "webhook-url", "", "explain the decisions of an actuator with --webhook-url `URL`")
	r.addTraceURL(flags)
	r.addStream(flags)
	return cmd
}

// addDecisionFlags adds the flags by which the actuator decides.
func addDecisionFlags(flags *pflag.FlagSet, settings *actuate.Options) {
	decide := pflag.NewFlagSet("", pflag.ContinueOnError)
	settings.AddDecisionFlags(decide)
	decide.VisitAll(func(flag *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(flag)
		flag.Usage = "explain the decisions of an actuator with --" + flag.Name
		if value != "" {
			flag.Usage += " `" + value + "`"
		}
		flags.AddFlag(flag)
	})
}
