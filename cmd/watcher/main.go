// The watcher publishes an event for each change of a source in its cluster.
package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// version is set when a release is built.
var version = "dev"

// stepLimit is how long the watcher may be busy with one source before the liveness probe fails.
const stepLimit = time.Minute

// smallHeap is what the watcher of a small cluster may take before it collects garbage, in bytes: see telemetry.KeepSmall.
const smallHeap = 24 << 20

func main() {
	os.Exit(telemetry.Main(func(ctx context.Context) error { return newCommand().ExecuteContext(ctx) }))
}

func newCommand() *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use:   "watcher",
		Short: "Publish an event for each change of a source: a Secret, a ConfigMap, and what writes them.",
		Long:  "Publish an event for each change of a source: a Secret, a ConfigMap, and what writes them.\n\n" + telemetry.EnvironmentUsage,
		Args:  cobra.NoArgs, Version: telemetry.BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := telemetry.Environment(cmd.Flags()); err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	s.addFlags(cmd.Flags())
	cmd.AddCommand(newKeysCommand())
	return cmd
}

func (s *settings) run(ctx context.Context) (err error) {
	if err := errors.Join(s.telemetry.Validate(), s.watcher.Validate()); err != nil {
		return err
	}
	logger := telemetry.NewLogger(os.Stderr, s.telemetry)
	telemetry.Bridge(logger)
	observed, err := telemetry.Setup(ctx, telemetry.Service{Name: "keyturn-watcher", Version: version, Cluster: s.watcher.Cluster}, logger, s.telemetry)
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

	if err := s.connectKubernetes(); err != nil {
		return err
	}

	health := &telemetry.Health{}
	s.watcher.Logger = logger
	s.watcher.Tracer = observed.TracerProvider.Tracer("github.com/keyturn/keyturn/internal/sources")
	s.watcher.Meter = observed.MeterProvider.Meter("github.com/keyturn/keyturn/internal/sources")
	s.watcher.Progress = func() sources.Progress {
		progress := telemetry.NewProgress(time.Now, stepLimit)
		health.AddLiveness("publishing", progress.Check)
		return progress
	}
	watcher, err := sources.New(s.watcher)
	if err != nil {
		return err
	}
	health.AddReadiness("sources", watcher.Ready)
	var connected atomic.Pointer[nats.Conn]
	health.AddReadiness("nats", func() error { return events.Connected(connected.Load()) })
	// Before NATS is reached, which can take as long as it likes: a program that waits is alive.
	if err := observed.Listen(ctx, health); err != nil {
		return err
	}
	s.connect.Cluster, s.connect.Role, s.connect.Name, s.connect.Logger = s.watcher.Cluster, "watcher", "keyturn-watcher", logger
	connection, err := events.Connect(ctx, s.connect)
	if err != nil {
		return err
	}
	stack.OnStop("nats", func(ctx context.Context) error { return events.Drain(ctx, connection) })
	connected.Store(connection)
	bus, err := events.Open(ctx, connection, s.watcher.Cluster, logger)
	if err != nil {
		return err
	}
	s.identity.Client, s.identity.Logger = s.watcher.Client, logger
	if err := identity.Claim(ctx, s.identity, bus); err != nil {
		return err
	}
	return watcher.Run(ctx, bus)
}
