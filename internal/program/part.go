package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
)

// part is what a program does, or one of several things that it does concurrently.
type part struct {
	// Role is watcher or actuator: the part's role on NATS.
	Role string
	// Prepare creates the work from its flags, before the program listens or connects, and adds its health checks to r.
	Prepare func(r *runtime) (prepared, error)
	// Connect connects to NATS with r.Connect. Nil means just that.
	Connect func(ctx context.Context, r *runtime) (*nats.Conn, error)
	// Identify compares the cluster with the owner of its name on the bus: identity.Claim or identity.Check. Nil means that nobody else can
	// be on the bus.
	Identify func(ctx context.Context, options identity.Options, bus *events.Bus) (identity.Keep, error)
}

// prepared is what a part does once everything that it needs is there.
type prepared struct {
	// Client is the client for the cluster whose identity is compared. Nil means that there is no cluster behind the name.
	Client kubernetes.Interface
	// Run does the work until ctx ends.
	Run func(ctx context.Context, bus *events.Bus) error
}

// running is a part of a running program.
type running struct {
	part      part
	runtime   *runtime
	work      prepared
	connected atomic.Pointer[nats.Conn]
	bus       *events.Bus
	keep      identity.Keep
}

// identify connects to NATS, opens the bus and compares the identity of the cluster.
func (p *running) identify(ctx context.Context, o Options) error {
	connection, err := p.part.connect(ctx, p.runtime)
	if err != nil {
		return err
	}
	p.connected.Store(connection)
	if p.bus, err = events.Open(ctx, connection, o.Cluster, p.runtime.Logger); err != nil {
		return err
	}
	if err := p.bus.Observe(p.runtime.Meter("events")); err != nil {
		return fmt.Errorf("observing the streams: %w", err)
	}
	if p.part.Identify == nil {
		p.keep = func(context.Context) error { return nil }
		return nil
	}
	options := o.Identity
	options.Client, options.Logger = p.work.Client, p.runtime.Logger
	p.keep, err = p.part.Identify(ctx, options, p.bus)
	return err
}

// run does the work until that ends, or until another cluster has taken the name of this one.
func (p *running) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var taken error
	var keeping sync.WaitGroup
	keeping.Go(func() {
		if taken = p.keep(ctx); taken != nil {
			cancel()
		}
	})
	err := p.work.Run(ctx, p.bus)
	cancel()
	keeping.Wait()
	if taken != nil {
		return taken
	}
	return err
}

// runAll runs all parts until one of them ends, and then stops the others. It returns the error of the first one, joined with the errors of
// others that failed for another reason than being stopped.
func runAll(ctx context.Context, parts []*running) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part.run(ctx) }()
	}
	first := <-ended
	cancel()
	var failed []error
	if !errors.Is(first, context.Canceled) {
		failed = append(failed, first)
	}
	for range len(parts) - 1 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return first
}
