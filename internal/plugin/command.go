// Package plugin implements the commands for users: they query an installation from a user's own machine and with their own permissions, also as a
// plugin of kubectl. It finds the installation in the cluster, reads the settings of its actuator there, and connects to its NATS through the API
// server. No environment variable sets a flag.
package plugin

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/commands"
)

const (
	short = "Roll workloads when what they read changes, and ask what changed, what was done about it, and what would be."
	long  = short + " The commands find the installation in the cluster of your kubeconfig, take the settings from there and " +
		"forward a port to its NATS by themselves, all with your own rights."
)

// Command returns the command.
func (p *Plugin) Command() *cobra.Command {
	root := &cobra.Command{
		Use: "keyturn", Short: short, Long: long, Version: commands.BuildVersion(p.version), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: p.guard,
	}
	for _, cmd := range []*cobra.Command{p.explainCommand(), p.compareCommand()} {
		cmd.PreRunE = p.prepareSettings
		root.AddCommand(cmd)
	}
	for _, cmd := range []*cobra.Command{
		p.statusCommand(), p.historyCommand(), p.timelineCommand(), p.clustersCommand(), p.deadLettersCommand(),
	} {
		cmd.PreRunE = p.prepare
		root.AddCommand(cmd)
	}
	root.AddCommand(p.hold(), p.release(), p.rollNow(), p.checkCommand(), p.versionCommand())
	for _, cmd := range root.Commands() {
		p.addFlags(cmd.Flags())
	}
	p.complete(root)
	return root
}

func (p *Plugin) addFlags(flags *pflag.FlagSet) {
	p.access.addFlags(flags)
	flags.StringVar(&p.namespace, "installation", "", "`namespace` of the installation; empty looks for it in "+usualNamespace+", then in "+
		"all, and asks about one that it finds there")
	flags.StringVar(&p.cluster, "cluster", "", "`name` of the cluster in subjects and events; empty means that of the installation")
	p.nats.AddFlags(flags)
	url := flags.Lookup("nats-url")
	url.Usage = "`URLs` of the NATS servers, separated by commas, where a NATS of your own can be reached; empty forwards a port to the embedded one"
	url.DefValue, p.nats.URL = "", ""
}
