package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/kube"
)

// declareInterval is the pause before the streams are declared again.
const declareInterval = time.Second

func (a *Actuator) addEmbeddedFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.Embed, "nats-embedded", false, "run a NATS JetStream server in this process, and use it instead of --nats-url")
	flags.StringVar(&a.Embedded.Listen, "nats-listen", "",
		"`address` on which the embedded server listens for the watcher; empty means none. An address other than loopback requires --nats-config")
	flags.StringVar(&a.Embedded.StoreDir, "nats-store-dir", "", "`directory` in which the embedded server stores its streams")
	flags.StringVar(&a.Embedded.ConfigFile, "nats-config", "",
		"nats-server configuration `file` with authorization, accounts, TLS and leaf nodes of the embedded server")
	flags.IntVar(&a.Embedded.Replicas, "nats-replicas", 1,
		"`number` of actuators whose embedded servers keep the streams together: 1, 3 or 5. More than 1 requires a cluster block in --nats-config")
	flags.StringVar(&a.StoresDomain, "stores-domain", "",
		"JetStream `domain` from which the embedded server copies the events of --stores-from, over a leaf node that --nats-config defines")
}

// validateNATS returns an error if the flags of the embedded server contradict each other.
func (a *Actuator) validateNATS() error {
	if a.Embed && a.Embedded.StoreDir == "" {
		return errors.New("--nats-store-dir: is empty, want a directory for the streams of --nats-embedded")
	}
	if !a.Embed && (a.Embedded.Listen != "" || a.Embedded.StoreDir != "" || a.Embedded.ConfigFile != "" || a.Embedded.Replicas != 1) {
		return errors.New("--nats-listen, --nats-store-dir, --nats-config, --nats-replicas: set without the embedded server, " +
			"want --nats-embedded with them")
	}
	if a.StoresDomain != "" && (!a.Embed || len(a.Actuate.StoresFrom) == 0) {
		return errors.New("--stores-domain: needs --nats-embedded and --stores-from")
	}
	return nil
}

// connect connects to NATS: to the embedded server, after starting it, and then declares the streams, or to the server at --nats-url.
func (a *Actuator) connect(ctx context.Context, r *runtime) (*nats.Conn, error) {
	if !a.Embed {
		connection, err := r.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return connection, a.guard(ctx, r, connection, nil)
	}
	server, err := embedded.Start(a.Embedded, r.Logger) //nolint:contextcheck // the server outlives the connecting, and logs by itself
	if err != nil {
		return nil, err
	}
	a.server = server
	r.OnStop("embedded nats", func(context.Context) error {
		server.Shutdown()
		return nil
	})
	r.Logger.InfoContext(ctx, "embedded nats server ready", "url", server.ClientURL())
	r.Health.AddReadiness("jetstream", server.Ready)
	if err := server.Observe(r.Meter("bus/embedded")); err != nil {
		return nil, err
	}
	connection, err := r.Connect(ctx, server.ClientOption())
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	var sources []*jetstream.StreamSource
	if a.StoresDomain != "" {
		sources = bus.StoreSources(a.StoresDomain, a.Actuate.StoresFrom)
	}
	if err := a.declare(ctx, r, js, sources); err != nil {
		return nil, err
	}
	return connection, a.guard(ctx, r, connection, bus.Declared(a.Embedded.Replicas, sources...))
}

// guard regularly compares the streams with the required ones until the program ends.
func (a *Actuator) guard(ctx context.Context, r *runtime, connection *nats.Conn, declared []jetstream.StreamConfig) error {
	js, err := jetstream.New(connection)
	if err != nil {
		return fmt.Errorf("opening jetstream: %w", err)
	}
	guard := bus.NewStreamGuard(js, a.Process.Cluster, declared, r.Logger)
	if len(declared) > 0 {
		guard.Compare(ctx) // reports the streams that could not be declared, before the programs refuse them
	}
	r.Go(ctx, "streams", func(ctx context.Context) error {
		guard.Run(ctx, a.guardInterval)
		return nil
	})
	return nil
}

// unfit returns why this actuator must not lead, or nil if it may. If its server is cut off from the others, it can do
// nothing, while another actuator may.
func (a *Actuator) unfit() error {
	if a.server == nil {
		return nil
	}
	return a.server.Alone()
}

// declare declares the streams. With several actuators, their servers accept that only when most of them are connected, so it retries.
func (a *Actuator) declare(ctx context.Context, r *runtime, js jetstream.JetStream, sources []*jetstream.StreamSource) error {
	for {
		err := bus.Declare(ctx, js, a.Embedded.Replicas, sources...)
		if err == nil || a.Embedded.Replicas == 1 || ctx.Err() != nil {
			return err
		}
		r.Logger.WarnContext(ctx, "streams not declared yet; waiting for the other actuators", "retry_in", declareInterval, "err", err)
		if !kube.Sleep(ctx, declareInterval) {
			return err
		}
	}
}
