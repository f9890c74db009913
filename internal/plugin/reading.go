package plugin

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

func (p *Plugin) clustersCommand() *cobra.Command {
	var format inspect.Format
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters in a stream, with replication lag and claimed identity.",
		Example: "  kubectl keyturn clusters --nats-url tls://hub.example.com:4222 --cluster hub --stream FLEET",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, err := p.openReader(cmd.Context())
			if err != nil {
				return err
			}
			return inspect.Clusters(cmd.Context(), reader, format, cmd.OutOrStdout())
		},
	}
	addOutput(cmd, &format, "")
	p.addStream(cmd.Flags())
	return cmd
}

func (p *Plugin) compareCommand() *cobra.Command {
	var options inspect.CompareOptions
	var since string
	cmd := &cobra.Command{
		Use:     "compare",
		Short:   "Compare what Keyturn rolled, or would roll in a dry run, with what Reloader rolled, and say why.",
		Example: "  kubectl keyturn compare --since 168h\n  kubectl keyturn compare -n shop",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Since, err = inspect.ParseSince(since, time.Now()); err != nil {
				return err
			}
			reader, err := p.openReader(cmd.Context())
			if err != nil {
				return err
			}
			options.Clients, options.Cluster = p.clients(), p.cluster
			options.Namespaces, options.Jobs = p.settings.Namespaces, slices.Contains(p.settings.Jobs, actuate.JobsRecreate)
			return inspect.Compare(cmd.Context(), options, reader, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&options.Namespace, "namespace", "n", "", "only workloads in this `namespace`; empty means all")
	flags.StringVar(&since, "since", "24h",
		"start of the comparison: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z; empty means all that the stream keeps")
	p.addStream(flags)
	return cmd
}

func (p *Plugin) deadLettersCommand() *cobra.Command {
	var format inspect.Format
	var limit int
	cmd := &cobra.Command{
		Use:     "dead-letters",
		Short:   "List dead-lettered events, with the reason.",
		Example: "  kubectl keyturn dead-letters --limit 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit: %d, want 1 or more", limit)
			}
			b, err := p.openBus(cmd.Context())
			if err != nil {
				return err
			}
			return inspect.DeadLetters(cmd.Context(), b, limit, format, cmd.OutOrStdout())
		},
	}
	addOutput(cmd, &format, "")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum `number` of events to list; older ones are left out")
	return cmd
}

// addStream adds the flag of commands that can read the events of many clusters.
func (p *Plugin) addStream(flags *pflag.FlagSet) {
	flags.StringVar(&p.stream, "stream", "",
		"`name` of a stream with the events of many clusters, such as FLEET on a hub; empty reads the streams of --cluster")
}

// addTraceURL adds the flag of commands that link to traces.
func (p *Plugin) addTraceURL(flags *pflag.FlagSet) {
	flags.StringVar(&p.traceURL, "trace-url", "", "`URL` of a trace, with {traceID} for its ID, such as http://jaeger:16686/trace/{traceID}; "+
		"empty takes KEYTURN_TRACE_URL of the installation, or else prints the ID alone")
}

func (p *Plugin) validateTraceURL() error {
	if err := events.ValidateTraceURL(p.traceURL); err != nil {
		return fmt.Errorf("--trace-url: %w", err)
	}
	return nil
}

// output is the value of the flag --output.
type output inspect.Format

var formats = []string{string(inspect.Table), string(inspect.Wide), string(inspect.JSON), string(inspect.YAML)}

const allFormats = "table, wide, json or yaml"

// addOutput adds the flag --output to a command. The default is a table. About is appended to the help, and may be empty.
func addOutput(cmd *cobra.Command, format *inspect.Format, about string) {
	*format = inspect.Table
	cmd.Flags().VarP((*output)(format), "output", "o", "output `format`: "+allFormats+about)
	// The only errors are that the flag does not exist, or is already registered.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *output) String() string { return string(*o) }

// Set sets the format.
func (o *output) Set(text string) error {
	if !slices.Contains(formats, text) {
		return errors.New("want " + allFormats)
	}
	*o = output(text)
	return nil
}

// Type returns the name of the type in the help.
func (o *output) Type() string { return "format" }
