package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// program describes a program to run. All fields are required unless they say otherwise.
type program struct {
	// Name is the last part of the program's name in telemetry and in NATS's monitoring, such as watcher.
	Name string
	Build
	// Options are the options from flags. They must be valid.
	Options Options
	// Log receives the log lines.
	Log io.Writer
	// Parts run concurrently. They are prepared, connected and identified in this order, and share everything else. When one of them ends, all end.
	Parts []part
	// OneServer serves the probes also at the address of the metrics, and liveness also as /live. Metrics are served once the program has been ready.
	// Options.HealthAddr is then not used.
	OneServer bool
	// Servers are servers in addition to metrics and health. Default none.
	Servers []server
}

// part is the work of a program, or one of several concurrent works.
type part struct {
	// Role is watcher or actuator: the part's role on NATS.
	Role string
	// Prepare creates the work from its flags, before the program listens or connects, and adds its health checks to r.
	Prepare func(r *runtime) (prepared, error)
	// Connect connects to NATS. Nil means r.Connect.
	Connect func(ctx context.Context, r *runtime) (*nats.Conn, error)
	// Identify is claimName or checkName. Nil means that no other cluster can be on the bus.
	Identify func(ctx context.Context, of identity, b *bus.Bus) (keep, error)
}

type prepared struct {
	// Client is the client for the cluster whose identity is checked. Nil means that the name stands for no cluster.
	Client kubernetes.Interface
	// Run does the work until ctx ends.
	Run func(ctx context.Context, b *bus.Bus) error
}

// run runs a program until ctx ends or a step fails, and undoes its set-up. It returns the error of the work, or that of the
// shutdown if the work has none.
func run(ctx context.Context, p program) error { return p.within(ctx, p.runParts) }

// within does the work of a program between its set-up and its shutdown.
func (p *program) within(ctx context.Context, work func(ctx context.Context, r *runtime) error) (err error) {
	r, err := p.setUp(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.stop(context.WithoutCancel(ctx))) }()
	if p.SmallHeap > 0 {
		r.Go(ctx, "memory", func(ctx context.Context) error {
			keepSmall(ctx, p.SmallHeap)
			return nil
		})
	}
	return work(ctx, r)
}

func (p *program) runParts(ctx context.Context, r *runtime) (err error) {
	if p.SmallHeap > 0 {
		if err := CountRequests(r.observed.MeterProvider); err != nil {
			return err
		}
	}
	parts := make([]*running, len(p.Parts))
	for i, part := range p.Parts {
		if parts[i], err = p.prepare(r, part); err != nil {
			return err
		}
	}
	// Listen before connecting to NATS, which can take any time: a waiting program is alive.
	if err := r.listen(ctx, *p); err != nil {
		return err
	}
	for _, part := range parts {
		if err := part.identify(ctx, p.Options); err != nil {
			return err
		}
	}
	if p.SmallHeap > 0 {
		// The first lists, which follow, need more memory than anything later, and the code of the start, a third of all code, would still be in
		// memory then.
		giveBack()
	}
	return runAll(ctx, parts)
}

// listen serves metrics, health and the program's other servers, each at its address, until shutdown.
func (r *runtime) listen(ctx context.Context, p program) error {
	servers := []server{
		{Name: "metrics", Addr: p.Options.MetricsAddr, Handler: r.observed.Metrics},
		{Name: "health", Addr: p.Options.HealthAddr, Handler: r.Health.Handler()},
	}
	if p.OneServer {
		mux := http.NewServeMux()
		// Reloader's chart uses this path for its readiness probe.
		mux.Handle("/metrics", r.Health.OnceReady(r.observed.Metrics))
		mux.Handle("/", r.Health.Handler("/live"))
		servers = []server{{Name: "metrics", Addr: p.Options.MetricsAddr, Handler: mux}}
	}
	for _, server := range append(servers, p.Servers...) {
		if err := r.serve(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) setUp(ctx context.Context) (*runtime, error) {
	logger := NewLogger(p.Log, p.Options.Log)
	if p.SmallHeap > 0 {
		Bridge(logger) //nolint:contextcheck // klog has no context.
	}
	service := Service{Name: "keyturn-" + p.Name, Version: p.Version, Cluster: p.Options.Cluster, Scraped: p.Options.MetricsAddr != ""}
	observed, err := Setup(ctx, service)
	if err != nil {
		return nil, err
	}
	connect := p.Options.NATS
	connect.Cluster, connect.Name = p.Options.Cluster, service.Name
	r := &runtime{
		Logger: logger, Health: &telemetry.Probes{}, observed: observed, connect: connect, stack: &stack{logger: logger, limit: stopLimit},
	}
	r.OnStop("telemetry", observed.Shutdown)
	return r, nil
}

// prepare creates the work of a part, with its own runtime, which shares everything except the connection to NATS.
func (p *program) prepare(shared *runtime, part part) (*running, error) {
	r := *shared
	r.connect.Role = part.Role
	check := "nats"
	if len(p.Parts) > 1 {
		r.Logger = r.Logger.With("program", part.Role)
		check = part.Role + " nats"
	}
	r.connect.Logger = r.Logger
	of := &running{part: part, runtime: &r}
	var err error
	if of.work, err = part.Prepare(&r); err != nil {
		return nil, err
	}
	r.Health.AddReadiness(check, func() error { return bus.Connected(of.connected.Load()) })
	r.Health.AddLiveness(check, func() error { return bus.Alive(of.connected.Load()) })
	return of, nil
}

type running struct {
	part      part
	runtime   *runtime
	work      prepared
	connected atomic.Pointer[nats.Conn]
	bus       *bus.Bus
	keeps     []keep
}

// identify connects to NATS, opens the bus and checks the identity of the cluster.
func (p *running) identify(ctx context.Context, o Options) error {
	connect := p.part.Connect
	if connect == nil {
		connect = func(ctx context.Context, r *runtime) (*nats.Conn, error) { return r.Connect(ctx) }
	}
	connection, err := connect(ctx, p.runtime)
	if err != nil {
		return err
	}
	p.connected.Store(connection)
	if p.bus, err = bus.Open(ctx, connection, o.Cluster, p.runtime.Logger); err != nil {
		return err
	}
	if err := p.bus.Observe(p.runtime.Meter("bus")); err != nil {
		return fmt.Errorf("observing the streams: %w", err)
	}
	p.keeps = []keep{p.bus.WatchHistory}
	if p.part.Identify == nil {
		return nil
	}
	of := identity{client: p.work.Client, replaces: o.ReplacesCluster, interval: claimCheckInterval, log: p.runtime.Logger}
	name, err := p.part.Identify(ctx, of, p.bus)
	if err != nil {
		return err
	}
	p.keeps = append(p.keeps, name)
	return nil
}

// run does the work until it ends. Meanwhile, it keeps the name of the cluster, and watches the size of the history.
func (p *running) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	for _, keep := range p.keeps {
		keeping.Go(func() { keep(ctx) })
	}
	defer keeping.Wait()
	defer cancel()
	return p.work.Run(ctx, p.bus)
}

// runAll runs all parts until one of them ends, and then stops the others. It returns the error of the first one, joined with errors of others that
// did not fail because they were stopped.
func runAll(ctx context.Context, parts []*running) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part.run(ctx) }()
	}
	var first error
	var failed []error
	for i := range parts {
		err := <-ended
		if i == 0 {
			first = err
			cancel()
		}
		if !errors.Is(err, context.Canceled) {
			failed = append(failed, err)
		}
	}
	return cmp.Or(errors.Join(failed...), first)
}
