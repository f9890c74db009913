package program

import (
	"context"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// stopLimit is how long each step of the shutdown may take.
const stopLimit = 10 * time.Second

// program describes a program to run. All fields are required unless they say otherwise.
type program struct {
	// Name is the last part of the program's name in telemetry and in NATS's monitoring, such as watcher.
	Name string
	Build
	// Options come from the flags. They must be valid.
	Options Options
	// Log is where log lines go.
	Log io.Writer
	// Parts are what the program does concurrently. They are prepared, connected and identified in this order, and share everything else.
	// When one of them ends, all do.
	Parts []part
	// OneServer serves the probes at the address of the metrics too, and liveness also as /live. Metrics are served once the program has
	// been ready. Options.HealthAddr is then not used.
	OneServer bool
	// Servers are further servers, besides metrics and health. Default none.
	Servers []server
}

// run runs a program until ctx ends or a step fails, and undoes what it has set up. It returns the error of the work, or that of the
// shutdown if the work has none.
func run(ctx context.Context, p program) (err error) {
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
	parts := make([]*running, len(p.Parts))
	for i, part := range p.Parts {
		if parts[i], err = p.prepare(r, part); err != nil {
			return err
		}
	}
	// Listen before connecting to NATS, which can take any time: a program that waits is alive.
	if err := r.listen(ctx, p); err != nil {
		return err
	}
	for _, part := range parts {
		if err := part.identify(ctx, p.Options); err != nil {
			return err
		}
	}
	p.begin()
	return runAll(ctx, parts)
}

// setUp creates the runtime, with logger and telemetry.
func (p *program) setUp(ctx context.Context) (*runtime, error) {
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
	connect.Cluster, connect.Name = p.Options.Cluster, service.Name
	r := &runtime{
		Logger: logger, Health: &health.Probes{}, observed: observed, connect: connect, stack: &stack{logger: logger, limit: stopLimit},
	}
	r.OnStop("telemetry", observed.Shutdown)
	return r, nil
}

// ownProcess sets what is global to the process, unless the program shares the process.
func (p *program) ownProcess(r *runtime) error {
	if p.SmallHeap == 0 {
		return nil
	}
	r.OnStop("memory", keepSmall(p.SmallHeap))
	return telemetry.CountRequests(r.observed.MeterProvider)
}

// begin returns memory that only the start needed to the system, unless the program shares its process. The first lists, which come next, need
// more memory than anything later, and the code of the start, a third of all code, would still be in memory at that time.
func (p *program) begin() {
	if p.SmallHeap > 0 {
		giveBack()
	}
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
	r.Health.AddReadiness(check, func() error { return events.Connected(of.connected.Load()) })
	r.Health.AddLiveness(check, func() error { return events.Alive(of.connected.Load()) })
	return of, nil
}

// connect connects a part to NATS.
func (p *part) connect(ctx context.Context, r *runtime) (*nats.Conn, error) {
	if p.Connect == nil {
		return r.Connect(ctx)
	}
	return p.Connect(ctx, r)
}
