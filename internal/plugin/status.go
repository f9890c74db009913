package plugin

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
)

// status is the status of an installation.
type status struct {
	Installation string    `json:"installation"`
	Programs     []program `json:"programs"`
	// Leader is the actuator that leads. It is nil if none does, or if there is no election.
	Leader *leader `json:"leader,omitempty"`
	// DryRun says that the actuators roll nothing.
	DryRun bool `json:"dryRun,omitempty"`
	inspect.Status

	// unelected says that there is no election, and all actuators act.
	unelected bool
	now       time.Time
}

// statusOptions are the flags of the command.
type statusOptions struct {
	namespace string
	output    inspect.Format
	since     time.Duration
}

func (p *Plugin) statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the programs run, who leads, what waits and what has failed.",
		Example: "  kubectl keyturn status\n  kubectl keyturn status -n shop --since 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.showStatus(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "only workloads and changes of this `namespace`; empty means all")
	flags.DurationVar(&o.since, "since", 24*time.Hour, "how far back to count changes and rollouts; the lists of workloads have what is older, too")
	commands.AddOutput(cmd, &o.output, "", inspect.Table, inspect.Wide, inspect.JSON, inspect.YAML)
	return cmd
}

func (p *Plugin) showStatus(cmd *cobra.Command, o statusOptions) error {
	ctx, s := cmd.Context(), status{now: time.Now()}
	var err error
	if p.installed != nil {
		s.Installation = p.installed.namespace
		if s.Programs, err = p.installed.programs(ctx); err != nil {
			return err
		}
		s.unelected, s.DryRun = !p.installed.elects(), p.installed.isDry()
		if s.Leader, err = p.installed.leader(ctx, s.now); err != nil {
			return err
		}
	}
	streams, err := p.streams(ctx)
	if err != nil {
		return s.without(cmd.OutOrStdout(), o.output, err)
	}
	bus, disconnect, err := streams.OpenBus(ctx)
	if err != nil {
		return s.without(cmd.OutOrStdout(), o.output, err)
	}
	defer disconnect()
	if s.Status, err = inspect.ReadStatus(ctx, bus, o.namespace, s.now.Add(-o.since)); err != nil {
		return s.without(cmd.OutOrStdout(), o.output, err)
	}
	return s.write(cmd.OutOrStdout(), o.output)
}

// without writes what is known if the streams cannot be read. A program that does not run may be the reason.
func (s *status) without(out io.Writer, format inspect.Format, err error) error {
	if format == inspect.Table || format == inspect.Wide {
		s.writePrograms(out)
	}
	return err
}

func (s *status) write(out io.Writer, format inspect.Format) error {
	if done, err := format.Encode(out, s); done || err != nil {
		return err
	}
	return s.writeTable(out, inspect.View{Format: format, Narrow: true})
}
