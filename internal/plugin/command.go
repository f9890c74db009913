// Package plugin implements kubectl-keyturn: commands that query an installation from a user's own machine and with their own permissions.
// It finds the installation in the cluster, reads the settings of its actuator there, and connects to its NATS through the API server.
package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	short = "Ask Keyturn what changed, what it did about it, and what it would do."
	long  = short + " It finds the installation in the cluster of your kubeconfig, takes the settings from there and " +
		"forwards a port to its NATS by itself, all with your own rights."
)

// ofContext is the annotation of flags --namespace that default to the namespace of the context.
const ofContext = "keyturn.dev/of-context"

// Plugin is kubectl-keyturn.
type Plugin struct {
	version string
	access  access
	// namespace is the namespace of the installation. If it is empty, the installation is searched for.
	namespace string
	cluster   string
	// allNamespaces asks for the events of all namespaces, instead of the context's.
	allNamespaces bool
	nats          bus.ConnectOptions
	settings      actuate.Options
	// completionTime bounds how long a shell waits for completions. It is 2 seconds, except in tests.
	completionTime time.Duration

	// installed is the installation, after a command has searched for it. It is nil if the flags say everything.
	installed *installation
	// unsettled is why the installation was not found, if flags have the address of NATS and the cluster. The settings of the actuator are then
	// not known.
	unsettled error
	tunnel    *tunnel
	// files is the directory with copies of files of the installation. It is empty if there are none.
	files string
}

// New returns a plugin with the defaults.
func New(version string) *Plugin {
	return &Plugin{version: version, settings: actuate.DefaultOptions(), completionTime: 2 * time.Second}
}

// Run runs the command that the arguments name, and cleans up after it.
func (p *Plugin) Run(ctx context.Context, args []string, out, errOut io.Writer) error {
	defer p.close()
	cmd := p.Command()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	return cmd.ExecuteContext(ctx)
}

func (p *Plugin) close() {
	if p.tunnel != nil {
		p.tunnel.close()
	}
	if p.files != "" {
		os.RemoveAll(p.files)
	}
}

// Command returns the command.
func (p *Plugin) Command() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-keyturn", Short: short, Long: long,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl keyturn"},
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return commands.Environment(cmd.Flags()) },
	}
	p.addFlags(root.PersistentFlags())
	program := &commands.Program{
		Narrow: true, Settings: &p.settings, Unknown: func() []string { return p.installed.unknown() }, Clients: p.clients, Streams: p.streams,
	}
	for _, cmd := range []*cobra.Command{
		p.statusCommand(), explain(program), p.history(program), p.timelineCommand(program), clusters(program), commands.DeadLetters(program),
	} {
		cmd.PreRunE = p.prepare
		root.AddCommand(cmd)
	}
	root.AddCommand(p.hold(), p.release(), p.rollNow(), p.versionCommand())
	p.complete(root)
	return root
}

func (p *Plugin) addFlags(flags *pflag.FlagSet) {
	p.access.addFlags(flags)
	flags.StringVar(&p.namespace, "installation", "", "`namespace` of the installation; empty looks for it in "+usualNamespace+", then in all")
	flags.StringVar(&p.cluster, "cluster", "", "`name` of the cluster in subjects and events; empty means that of the installation")
	p.nats.AddFlags(flags)
	url := flags.Lookup("nats-url")
	url.Usage = "`URLs` of the NATS servers, separated by commas, where a NATS of your own can be reached; empty forwards a port to the embedded one"
	url.DefValue, p.nats.URL = "", ""
}

// prepare opens the access to the API server and sets the flags of a command. Flags from the command line or from variables are kept.
func (p *Plugin) prepare(cmd *cobra.Command, _ []string) error {
	if err := p.access.open(p.version, nil); err != nil {
		return err
	}
	if err := p.configure(cmd.Context(), cmd.Flags()); err != nil {
		return err
	}
	if p.unsettled != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "The settings of the actuator are not known, the defaults count: %v\n", p.unsettled)
	}
	return nil
}

// configure sets the flags of a command from the context and the installation.
func (p *Plugin) configure(ctx context.Context, flags *pflag.FlagSet) error {
	if namespace := flags.Lookup("namespace"); namespace != nil && namespace.Annotations[ofContext] != nil && !namespace.Changed && !p.allNamespaces {
		if err := namespace.Value.Set(p.access.namespace); err != nil {
			return err
		}
	}
	given := p.nats.URL != "" && p.cluster != ""
	if given && flags.Lookup("roll-all") == nil {
		return nil // The command needs no setting of the actuator.
	}
	installed, err := find(ctx, p.access.typed, p.namespace)
	if err != nil && given {
		p.unsettled = err
		return nil
	}
	if err != nil {
		return err
	}
	p.installed = installed
	if err := p.fetchFiles(ctx, flags); err != nil {
		return err
	}
	if err := commands.EnvironmentOf(flags, p.installed.setting); err != nil {
		return fmt.Errorf("settings of the installation in namespace %s: %w", p.installed.namespace, err)
	}
	return nil
}

func (p *Plugin) clients() (workload.Clients, error) {
	return workload.Clients{Typed: p.access.typed, Dynamic: p.access.dynamic}, nil
}

func (p *Plugin) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the plugin.", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), commands.BuildVersion(p.version))
		},
	}
}

// setContext makes a flag default to the namespace of the context.
func setContext(namespace *pflag.Flag, usage string) {
	namespace.Usage, namespace.DefValue, namespace.Annotations = usage, "", map[string][]string{ofContext: {}}
}

func explain(program *commands.Program) *cobra.Command {
	cmd := commands.Explain(program)
	cmd.Example = "  kubectl keyturn explain deployment/web\n" +
		"  kubectl keyturn explain statefulset/db -n shop --output json"
	setContext(cmd.Flags().Lookup("namespace"), "`namespace` of the workload; empty means that of the context")
	cmd.Flags().StringSliceVar(&program.Settings.Namespaces, "namespaces", nil, "explain the decisions of an actuator with these `namespaces`")
	cmd.Flags().StringSliceVar(&program.Settings.StoresFrom, "stores-from", nil, "explain the decisions of an actuator with these `clusters`")
	return cmd
}

func clusters(program *commands.Program) *cobra.Command {
	cmd := commands.Clusters(program)
	cmd.Example = "  kubectl keyturn clusters --nats-url tls://hub.example.com:4222 --cluster hub --stream FLEET"
	return cmd
}

func (p *Plugin) history(program *commands.Program) *cobra.Command {
	cmd := commands.History(program)
	cmd.Example = "  kubectl keyturn history --since 2h\n" +
		"  kubectl keyturn history -n shop --workload deployment/web --verb failed,held\n" +
		"  kubectl keyturn history --source secret/db --follow"
	p.inNamespace(cmd)
	return cmd
}

// inNamespace makes a command of the history select the namespace of the context, or all.
func (p *Plugin) inNamespace(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&p.allNamespaces, "all-namespaces", "A", false, "events of all namespaces")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	setContext(cmd.Flags().Lookup("namespace"), "only events in this `namespace`; empty means that of the context")
}
