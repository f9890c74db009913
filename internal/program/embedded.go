package program

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

const configUsage = "nats-server configuration `file` of that server: the address to listen on (none by default), authorization, " +
	"accounts, TLS, leaf nodes, and a cluster block with the routes to all of 3 or 5 servers that keep the streams together"

func (a *Actuator) addEmbeddedFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.Embedded.StoreDir, "nats-store-dir", "",
		"`directory` for the streams of a NATS JetStream server that runs in this process and is used instead of --nats-url; empty runs none")
	flags.StringVar(&a.Embedded.ConfigFile, "nats-config", "", configUsage)
	flags.IntVar(&a.Replicas, "nats-replicas", 0,
		"declare the streams at --nats-url, with this `number` of copies, on servers of keyturn nats, one of which has that address; "+
			"0 leaves that to an operator")
}

// validateNATS returns an error if the flags of the embedded server contradict each other.
func (a *Actuator) validateNATS() error {
	if a.Embedded.ConfigFile != "" && a.Embedded.StoreDir == "" {
		return fmt.Errorf("--nats-config: %q, want it with --nats-store-dir only", a.Embedded.ConfigFile)
	}
	if a.Embedded.StoreDir == "" && a.Replicas == 0 && len(a.storeSources()) > 0 {
		return fmt.Errorf("--stores-from: %q, want a domain with --nats-store-dir or --nats-replicas only", a.Actuate.StoresFrom)
	}
	if !slices.Contains([]int{0, 1, 3, 5}, a.Replicas) || a.Replicas > 0 && a.Embedded.StoreDir != "" {
		return fmt.Errorf("--nats-replicas: %d, want 0 with --nats-store-dir, and 0, 1, 3 or 5 without", a.Replicas)
	}
	return nil
}

// connect connects to NATS: to the embedded server, which it starts, or to the server at --nats-url. It declares the streams unless an operator does.
func (a *Actuator) connect(ctx context.Context, r *runtime) (*nats.Conn, error) {
	replicas := a.Replicas
	var further []nats.Option
	switch {
	case a.Embedded.StoreDir != "":
		server, err := r.startNATS(ctx, a.Embedded)
		if err != nil {
			return nil, err
		}
		a.server, replicas = server, server.Replicas()
		r.Health.AddReadiness("jetstream", server.Ready)
		further = append(further, server.ClientOption())
	case replicas > 0:
		// The server beside this program restarts at the same address. The servers of other pods are not for clients of this one.
		further = append(further, nats.IgnoreDiscoveredServers())
	}
	connection, err := r.Connect(ctx, further...)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(connection)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	if replicas == 0 {
		a.guard(ctx, r, js, nil)
		return connection, nil
	}
	if replicas > 1 {
		a.majority = bus.NewMajority(js)
		r.Go(ctx, "majority", func(ctx context.Context) error {
			a.majority.Run(ctx)
			return nil
		})
	}
	declared, err := a.declare(ctx, r, js, bus.Declared(replicas, a.storeSources()...))
	if err != nil {
		return nil, err
	}
	a.guard(ctx, r, js, declared)
	return connection, nil
}

// startNATS starts a server, observes it and stops it at the shutdown.
func (r *runtime) startNATS(ctx context.Context, options embedded.Options) (*embedded.Server, error) {
	server, err := embedded.Start(options, r.Logger) //nolint:contextcheck // the server outlives the connecting, and logs by itself
	if err != nil {
		return nil, err
	}
	r.OnStop("embedded nats", func(context.Context) error {
		server.Shutdown()
		return nil
	})
	r.Logger.InfoContext(ctx, "embedded nats server ready", "url", server.ClientURL())
	return server, server.Observe(r.Meter("bus/embedded"))
}

// storeSources returns the sources of CHANGES in other JetStream domains.
func (a *Actuator) storeSources() []*jetstream.StreamSource {
	var sources []*jetstream.StreamSource
	for _, from := range a.Actuate.StoresFrom {
		if cluster, domain, has := strings.Cut(from, "@"); has {
			sources = append(sources, bus.StoreSources(domain, []string{cluster})...)
		}
	}
	return sources
}

// guard regularly compares the streams with the required ones until the program ends.
func (a *Actuator) guard(ctx context.Context, r *runtime, js jetstream.JetStream, declared []jetstream.StreamConfig) {
	guard := bus.NewStreamGuard(js, a.Actuate.Cluster, declared, r.Logger)
	if len(declared) > 0 {
		guard.Compare(ctx) // reports the streams that could not be declared, before the programs refuse them
	}
	r.Go(ctx, "streams", func(ctx context.Context) error {
		guard.Run(ctx, a.guardInterval)
		return nil
	})
}

// isLeaf reports whether the server with the streams is a leaf node of a hub, so that others may reach the streams. Only such a server has a domain.
func (a *Actuator) isLeaf(ctx context.Context, js jetstream.JetStream) (bool, error) {
	if a.server != nil {
		return a.server.IsLeaf(), nil
	}
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the domain of the streams: %w", err)
	}
	return info.Domain != "", nil
}

// unfit returns why this actuator must not lead, or nil if it may. If its server is cut off from the others, another actuator may still work.
func (a *Actuator) unfit() error {
	if a.majority == nil {
		return nil
	}
	return a.majority.Lost()
}

// declare declares the streams, and returns them as declared. It retries, because several servers accept this only once most of them are connected,
// and because a server in another process may restart.
func (a *Actuator) declare(
	ctx context.Context, r *runtime, js jetstream.JetStream, streams []jetstream.StreamConfig,
) ([]jetstream.StreamConfig, error) {
	for {
		isLeaf, err := a.isLeaf(ctx, js)
		declared := streams
		if !isLeaf {
			declared = bus.Sole(streams)
		}
		if err == nil {
			err = bus.Declare(ctx, js, declared)
		}
		if err == nil || a.server != nil && a.server.Replicas() == 1 || ctx.Err() != nil {
			return declared, err
		}
		r.Logger.WarnContext(ctx, "streams not declared yet; waiting for the nats servers", "retry_in", declareInterval, "err", err)
		if !kube.Sleep(ctx, declareInterval) {
			return nil, err
		}
	}
}
