// The actuator rolls the workloads that depend on a changed source in its cluster.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/process"
)

// version is set when a release is built.
var version = "dev"

// smallHeap is the heap of the actuator of a small cluster, in bytes: see process.Program. A third of it are buffers of the embedded NATS.
const smallHeap = 48 << 20

const short = "Roll the workloads that depend on a changed Secret, ConfigMap or store secret."

func main() {
	os.Exit(process.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. smallHeap is that of process.Program.
func newCommand(smallHeap uint64) *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "actuator", Short: short, Long: short + "\n\n" + process.EnvironmentUsage,
		Args: cobra.NoArgs, Version: process.BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return process.Environment(cmd.Flags()) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), cmd.ErrOrStderr(), smallHeap) },
	}
	s.addCommonFlags(cmd.PersistentFlags())
	s.addRunFlags(cmd.Flags())
	cmd.AddCommand(newExplainCommand(s), newHistoryCommand(s), newClustersCommand(s), newDeadLettersCommand(s))
	return cmd
}

func (s *settings) run(ctx context.Context, log io.Writer, smallHeap uint64) error {
	s.actuator.Cluster = s.process.Cluster
	if err := errors.Join(s.process.Validate(), s.actuator.Validate(), s.validateNATS()); err != nil {
		return err
	}
	return process.Run(ctx, process.Program{
		Name: "actuator", Version: version, Options: s.process, Log: log, SmallHeap: smallHeap,
		Prepare: s.prepare, Connect: s.connect, Identify: identity.Check,
	})
}

func (s *settings) prepare(r *process.Runtime) (process.Work, error) {
	var err error
	if s.actuator.Client, err = s.process.Kube.Client(); err != nil {
		return process.Work{}, err
	}
	if s.actuator.ForceSync {
		if s.actuator.Dynamic, err = s.process.Kube.Dynamic(); err != nil {
			return process.Work{}, err
		}
	}
	s.notify.Logger, s.notify.Meter = r.Logger, r.Meter("notify")
	notifier, err := notify.New(s.notify)
	if err != nil {
		return process.Work{}, err
	}
	s.actuator.WhileLeading = notifier.Run
	s.actuator.Identity = os.Getenv("POD_NAME")
	s.actuator.Logger, s.actuator.Tracer, s.actuator.Meter = r.Logger, r.Tracer("actuate"), r.Meter("actuate")
	s.actuator.Progress = r.Progress("deciding")
	actuator, err := actuate.New(s.actuator)
	if err != nil {
		return process.Work{}, err
	}
	r.Health.AddReadiness("workloads", actuator.Ready)
	return process.Work{Client: s.actuator.Client, Run: actuator.Run}, nil
}
