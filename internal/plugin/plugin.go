package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/workload"
)

// ofContext is the annotation of flags --namespace that default to the namespace of the context.
const ofContext = "keyturn.dev/of-context"

// Plugin contains the commands for users.
type Plugin struct {
	version string
	access  access
	// namespace is the namespace of the installation. If it is empty, the installation is searched.
	namespace string
	cluster   string
	// allNamespaces asks for the events of all namespaces, instead of the context's.
	allNamespaces bool
	nats          bus.ConnectOptions
	// stream is a stream with the events of many clusters, which is read instead of the streams of cluster. It may be empty.
	stream string
	// traceURL is a template of links to traces: see events.ValidateTraceURL.
	traceURL string
	// completionTime bounds how long a shell waits for completions. It is 2 seconds, except in tests.
	completionTime time.Duration

	// installed is the installation, once a command has found it. It is nil if the flags are enough.
	installed *installation
	// settings are the settings of the actuator that matter to decisions.
	settings actuate.Options
	// unsettled is why settings of the actuator are unknown.
	unsettled error
	// connection is the command's connection to NATS, and tunnel its tunnel. Both are nil before, and the tunnel also if an address is given.
	connection *nats.Conn
	tunnel     *tunnel
	// warned says that the user was told that the certificate of NATS is not verified.
	warned   bool
	terminal terminal
	// files is the directory with copies of files of the installation. It is empty if there are none.
	files string
}

// New returns a plugin with the defaults. Close it after its command has run.
func New(version string) *Plugin {
	return &Plugin{
		version: version, settings: actuate.DefaultOptions(), completionTime: 2 * time.Second,
		terminal: terminal{screen: io.Discard, errOut: io.Discard},
	}
}

// Close closes what the command has opened.
func (p *Plugin) Close() {
	p.disconnect()
	if p.files != "" {
		os.RemoveAll(p.files)
	}
}

// prepare opens the access to the API server and finds the installation, unless the flags are enough.
func (p *Plugin) prepare(cmd *cobra.Command, _ []string) error {
	if err := p.open(cmd.Flags()); err != nil || p.isGiven() {
		return err
	}
	return p.find(cmd.Context())
}

// prepareSettings is prepare for a command that also needs the settings of the actuator.
func (p *Plugin) prepareSettings(cmd *cobra.Command, _ []string) error {
	if err := p.open(cmd.Flags()); err != nil {
		return err
	}
	return p.settle(cmd.Context(), cmd.ErrOrStderr())
}

// isGiven reports whether flags set the address of NATS and the cluster.
func (p *Plugin) isGiven() bool { return p.nats.URL != "" && p.cluster != "" }

// open opens the access to the API server, and sets the namespace of the context where it is the default of a flag.
func (p *Plugin) open(flags *pflag.FlagSet) error {
	if err := p.access.open(p.version, nil); err != nil {
		return err
	}
	namespace := flags.Lookup("namespace")
	if namespace == nil || namespace.Annotations[ofContext] == nil || namespace.Changed || p.allNamespaces {
		return nil
	}
	return namespace.Value.Set(p.access.namespace)
}

// find finds the installation, and takes from it the settings that the flags do not set.
func (p *Plugin) find(ctx context.Context) error {
	installed, err := find(ctx, p.access.typed, p.namespace)
	if err != nil {
		return err
	}
	if err := p.confirm(ctx, installed); err != nil {
		return err
	}
	p.installed = installed
	for flag, value := range map[string]*string{"cluster": &p.cluster, "trace-url": &p.traceURL} {
		if *value == "" {
			*value, _ = installed.setting(commands.EnvironmentVariable(flag))
		}
	}
	return nil
}

// confirm asks whether to use an installation outside of the usual namespace. Otherwise, anyone who may create a StatefulSet in any namespace could
// determine the output of commands, and the NATS that they connect to.
func (p *Plugin) confirm(ctx context.Context, found *installation) error {
	if p.namespace == "" && found.namespace != usualNamespace {
		if !p.terminal.agrees(ctx, fmt.Sprintf("Found outside of namespace %s: %s. Is it the installation?", usualNamespace, found)) {
			return fmt.Errorf("found outside of namespace %s: %s; if it is the installation, give --installation=%s",
				usualNamespace, found, found.namespace)
		}
		p.namespace = found.namespace // The question is asked once.
	}
	return nil
}

// settle finds the installation and reads the settings of its actuator. If flags set the address of NATS and the cluster, it also works without an
// installation. It writes to errOut why settings are unknown.
func (p *Plugin) settle(ctx context.Context, errOut io.Writer) error {
	isGiven := p.isGiven()
	if p.unsettled = p.find(ctx); p.unsettled != nil && !isGiven {
		return p.unsettled
	}
	if p.unsettled == nil {
		p.unsettled = p.readSettings(ctx)
	}
	if p.unsettled != nil {
		fmt.Fprintf(errOut, "Settings of the actuator are not known, their defaults count: %v\n", p.unsettled)
	}
	return nil
}

// readSettings reads the settings of the installation's actuator. If some cannot be read, it returns an error and sets the others.
func (p *Plugin) readSettings(ctx context.Context) error {
	flags := pflag.NewFlagSet("actuator", pflag.ContinueOnError)
	p.settings.AddDecisionFlags(flags)
	flags.StringSliceVar(&p.settings.Namespaces, "namespaces", nil, "")
	flags.StringSliceVar(&p.settings.StoresFrom, "stores-from", nil, "")
	missing := p.fetchFiles(ctx, flags)
	if err := commands.Environment(flags, p.installed.setting); err != nil {
		return fmt.Errorf("settings of the installation in namespace %s: %w", p.installed.namespace, err)
	}
	return missing
}

func (p *Plugin) clients() workload.Clients {
	return workload.Clients{Typed: p.access.typed, Dynamic: p.access.dynamic}
}

// addNamespace adds the flag --namespace, which defaults to the namespace of the context.
func addNamespace(flags *pflag.FlagSet, namespace *string, usage string) {
	flags.StringVarP(namespace, "namespace", "n", "", usage)
	flags.Lookup("namespace").Annotations = map[string][]string{ofContext: {}}
}
