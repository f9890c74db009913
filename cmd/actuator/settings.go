package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// settings are what the flags set.
type settings struct {
	kube      kube.Options
	connect   events.ConnectOptions
	telemetry telemetry.Options
	actuator  actuate.Options
	notify    notify.Options
	identity  identity.Options
	embed     bool
	embedded  embedded.Options
	// storesDomain is the JetStream domain of the clusters of StoresFrom.
	storesDomain string
	// stream is what the commands read in place of the streams of one cluster.
	stream string
}

func newSettings() *settings {
	return &settings{
		kube: kube.Options{UserAgent: "keyturn-actuator/" + version}, telemetry: telemetry.DefaultOptions(), actuator: actuate.DefaultOptions(),
	}
}

// addCommonFlags binds the flags that all commands have.
func (s *settings) addCommonFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.actuator.Cluster, "cluster", "", "`name` of the cluster in subjects and events, a DNS label")
	s.kube.AddFlags(flags)
	flags.StringSliceVar(&s.actuator.Namespaces, "namespaces", nil, "`namespaces` whose workloads are rolled, separated by commas; empty is all of them")
	flags.StringSliceVar(&s.actuator.StoresFrom, "stores-from", nil, "`clusters` whose watchers watch secret stores for this one too, separated by commas")
	s.connect.AddFlags(flags)
}

// addRunFlags binds the flags that no command has but the program itself.
func (s *settings) addRunFlags(flags *pflag.FlagSet) {
	s.telemetry.AddFlags(flags)
	s.actuator.AddFlags(flags)
	s.notify.AddFlags(flags)
	s.identity.AddFlags(flags)
	flags.BoolVar(&s.embed, "nats-embedded", false, "run a JetStream server in this process, and use it")
	flags.StringVar(&s.embedded.Listen, "nats-listen", "", "`address` of the embedded server for the watcher; empty is none. Off loopback it needs --nats-config")
	flags.StringVar(&s.embedded.StoreDir, "nats-store-dir", "", "`directory` of the embedded server's streams")
	flags.StringVar(&s.embedded.ConfigFile, "nats-config", "", "`file` with authorization, accounts, TLS and leaf nodes of the embedded server, in the format of nats-server")
	flags.StringVar(&s.storesDomain, "stores-domain", "", "JetStream `domain` of the clusters of --stores-from, where the embedded server is a leaf node of theirs by --nats-config")
}

// validateNATS reports what is wrong with the flags of the embedded server.
func (s *settings) validateNATS() error {
	if s.embed && s.embedded.StoreDir == "" {
		return errors.New("--nats-store-dir: is empty, want a directory for the streams of --nats-embedded")
	}
	if !s.embed && (s.embedded.Listen != "" || s.embedded.StoreDir != "" || s.embedded.ConfigFile != "") {
		return errors.New("--nats-listen, --nats-store-dir and --nats-config: are for the embedded server, want --nats-embedded with them")
	}
	if s.storesDomain != "" && (!s.embed || len(s.actuator.StoresFrom) == 0) {
		return errors.New("--stores-domain: is where the embedded server has the events of --stores-from from, want --nats-embedded and --stores-from with it")
	}
	return nil
}

// connectNATS connects to the embedded server, which it starts and gives its streams, or to the one at --nats-url.
func (s *settings) connectNATS(ctx context.Context, logger *slog.Logger, stack *telemetry.Stack) (*nats.Conn, error) {
	s.connect.Cluster, s.connect.Role, s.connect.Name, s.connect.Logger = s.actuator.Cluster, "actuator", "keyturn-actuator", logger
	var further []nats.Option
	if s.embed {
		server, err := embedded.Start(s.embedded, logger)
		if err != nil {
			return nil, err
		}
		stack.OnStop("embedded nats", func(context.Context) error {
			server.Shutdown()
			return nil
		})
		logger.InfoContext(ctx, "the embedded nats server is ready", "url", server.ClientURL())
		further = append(further, server.ClientOption())
	}
	connection, err := events.Connect(ctx, s.connect, further...)
	if err != nil {
		return nil, err
	}
	stack.OnStop("nats", func(ctx context.Context) error { return events.Drain(ctx, connection) })
	if !s.embed {
		return connection, nil
	}
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	var sources []*jetstream.StreamSource
	if s.storesDomain != "" {
		sources = events.StoreSources(s.storesDomain, s.actuator.StoresFrom)
	}
	if err := events.Declare(ctx, js, 1, sources...); err != nil {
		return nil, err
	}
	return connection, nil
}
