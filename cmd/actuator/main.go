// The actuator rolls the workloads that depend on what changed in its cluster.
package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// version is set when a release is built.
var version = "dev"

// stepLimit is how long the actuator may be busy with one step before the liveness probe fails.
const stepLimit = time.Minute

// smallHeap is what the actuator of a small cluster may take before it collects garbage, in bytes: see telemetry.KeepSmall. A
// third of it are buffers of the embedded NATS.
const smallHeap = 48 << 20

func main() {
	os.Exit(telemetry.Main(func(ctx context.Context) error { return newCommand().ExecuteContext(ctx) }))
}

func newCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "actuator",
		Short: "Roll the workloads that depend on what changed.",
		Long:  "Roll the workloads that depend on what changed.\n\n" + telemetry.EnvironmentUsage,
		Args:  cobra.NoArgs, Version: telemetry.BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return telemetry.Environment(cmd.Flags()) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context()) },
	}
	s.addCommonFlags(cmd.PersistentFlags())
	s.addRunFlags(cmd.Flags())
	cmd.AddCommand(newExplainCommand(s), newHistoryCommand(s), newClustersCommand(s), newDeadLettersCommand(s))
	return cmd
}

func (s *settings) run(ctx context.Context) (err error) {
	if err := errors.Join(s.telemetry.Validate(), s.actuator.Validate(), s.validateNATS()); err != nil {
		return err
	}
	logger := telemetry.NewLogger(os.Stderr, s.telemetry)
	telemetry.Bridge(logger)
	observed, err := telemetry.Setup(ctx, telemetry.Service{Name: "keyturn-actuator", Version: version, Cluster: s.actuator.Cluster}, logger, s.telemetry)
	if err != nil {
		return err
	}
	stack := telemetry.NewStack(logger, 10*time.Second)
	defer func() {
		if stopErr := stack.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopErr
		}
	}()
	stack.OnStop("telemetry", observed.Shutdown)
	stack.OnStop("memory", telemetry.KeepSmall(smallHeap))
	if err := telemetry.CountRequests(observed.MeterProvider); err != nil {
		return err
	}

	if s.actuator.Client, err = s.kube.Client(); err != nil {
		return err
	}
	if s.actuator.ForceSync {
		if s.actuator.Dynamic, err = s.kube.Dynamic(); err != nil {
			return err
		}
	}
	health := &telemetry.Health{}
	progress := telemetry.NewProgress(time.Now, stepLimit)
	health.AddLiveness("deciding", progress.Check)
	s.actuator.Progress = progress
	s.actuator.Identity = os.Getenv("POD_NAME")
	s.actuator.Logger = logger
	s.actuator.Tracer = observed.TracerProvider.Tracer("github.com/keyturn/keyturn/internal/actuate")
	s.actuator.Meter = observed.MeterProvider.Meter("github.com/keyturn/keyturn/internal/actuate")
	s.notify.Logger, s.notify.Meter = logger, observed.MeterProvider.Meter("github.com/keyturn/keyturn/internal/notify")
	notifier, err := notify.New(s.notify)
	if err != nil {
		return err
	}
	s.actuator.WhileLeading = notifier.Run
	actuator, err := actuate.New(s.actuator)
	if err != nil {
		return err
	}
	health.AddReadiness("workloads", actuator.Ready)
	var connected atomic.Pointer[nats.Conn]
	health.AddReadiness("nats", func() error { return events.Connected(connected.Load()) })
	// Before NATS is reached, which can take as long as it likes: a program that waits is alive.
	if err := observed.Listen(ctx, health); err != nil {
		return err
	}
	connection, err := s.connectNATS(ctx, logger, stack)
	if err != nil {
		return err
	}
	connected.Store(connection)
	bus, err := events.Open(ctx, connection, s.actuator.Cluster, logger)
	if err != nil {
		return err
	}
	s.identity.Client, s.identity.Logger = s.actuator.Client, logger
	if err := identity.Check(ctx, s.identity, bus); err != nil {
		return err
	}
	return actuator.Run(ctx, bus)
}
