package process

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// stopLimit is how long each step of the end may take.
const stopLimit = 10 * time.Second

// Program describes a program to Run. All fields are required unless they say otherwise.
type Program struct {
	// Name is watcher or actuator: the program's role on NATS, and the end of its names in telemetry and in NATS's monitoring.
	Name string
	// Version is the build's, for telemetry.
	Version string
	// Options come from the flags, and are valid.
	Options Options
	// Log is where log lines go.
	Log io.Writer
	// SmallHeap is the heap in bytes below which garbage is not collected, see keepSmall. 0 means that the program shares its process, as in
	// a test: it then leaves alone what is global to the process, which are the garbage collector and the logs and metrics of client-go.
	SmallHeap uint64
	// Prepare makes the work from its flags, before the program listens or connects, and adds its health checks to r.
	Prepare func(r *Runtime) (Work, error)
	// Connect connects to NATS by r.Connect. Nil does just that.
	Connect func(ctx context.Context, r *Runtime) (*nats.Conn, error)
	// Identify compares the cluster with the owner of its name on the bus: identity.Claim or identity.Check.
	Identify func(ctx context.Context, options identity.Options, bus *events.Bus) (identity.Keep, error)
}

// Work is what a program does once everything it needs is there.
type Work struct {
	// Client is the cluster's API server, whose identity is compared. Nil means that there is no cluster behind the name.
	Client kubernetes.Interface
	// Run does the work until ctx ends.
	Run func(ctx context.Context, bus *events.Bus) error
}

// Run runs a program until ctx ends or a step fails, and undoes what it set up. It returns the error of the work, or else that of the end.
func Run(ctx context.Context, p Program) (err error) {
	r, err := p.setUp(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := r.stack.stop(context.WithoutCancel(ctx)); err == nil {
			err = stopErr
		}
	}()
	if err := p.ownProcess(r); err != nil { //nolint:contextcheck // What it starts ends with the stack, not with the context.
		return err
	}
	work, err := p.Prepare(r)
	if err != nil {
		return err
	}
	// Before NATS is reached, which can take any time: a program that waits is alive.
	if err := r.listen(ctx, p.Options); err != nil {
		return err
	}
	bus, err := p.openBus(ctx, r)
	if err != nil {
		return err
	}
	options := p.Options.Identity
	options.Client, options.Logger = work.Client, r.Logger
	keep, err := p.Identify(ctx, options, bus)
	if err != nil {
		return err
	}
	return work.run(ctx, bus, keep)
}

// run does the work until it ends, or another cluster has taken the name of this one.
func (w *Work) run(ctx context.Context, bus *events.Bus, keep identity.Keep) error {
	ctx, cancel := context.WithCancel(ctx)
	var taken error
	var keeping sync.WaitGroup
	keeping.Go(func() {
		if taken = keep(ctx); taken != nil {
			cancel()
		}
	})
	err := w.Run(ctx, bus)
	cancel()
	keeping.Wait()
	if taken != nil {
		return taken
	}
	return err
}

// setUp makes the runtime: logger and telemetry.
func (p *Program) setUp(ctx context.Context) (*Runtime, error) {
	logger := telemetry.NewLogger(p.Log, p.Options.Log)
	if p.SmallHeap > 0 {
		telemetry.Bridge(logger) //nolint:contextcheck // Lines of klog come without a context.
	}
	service := telemetry.Service{Name: "keyturn-" + p.Name, Version: p.Version, Cluster: p.Options.Cluster, Scraped: p.Options.MetricsAddr != ""}
	observed, err := telemetry.Setup(ctx, service)
	if err != nil {
		return nil, err
	}
	connect := p.Options.NATS
	connect.Cluster, connect.Role, connect.Name, connect.Logger = p.Options.Cluster, p.Name, service.Name, logger
	r := &Runtime{Logger: logger, observed: observed, connect: connect, stack: stack{logger: logger, limit: stopLimit}}
	r.OnStop("telemetry", observed.Shutdown)
	return r, nil
}

// ownProcess sets what is global to the process, unless the program shares it.
func (p *Program) ownProcess(r *Runtime) error {
	if p.SmallHeap == 0 {
		return nil
	}
	r.OnStop("memory", keepSmall(p.SmallHeap))
	return telemetry.CountRequests(r.observed.MeterProvider)
}

// openBus connects to NATS and opens the bus. Readiness includes the connection.
func (p *Program) openBus(ctx context.Context, r *Runtime) (*events.Bus, error) {
	connect := p.Connect
	if connect == nil {
		connect = func(ctx context.Context, r *Runtime) (*nats.Conn, error) { return r.Connect(ctx) }
	}
	connection, err := connect(ctx, r)
	if err != nil {
		return nil, err
	}
	r.connected.Store(connection)
	return events.Open(ctx, connection, p.Options.Cluster, r.Logger)
}
