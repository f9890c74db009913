package program

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/telemetry"
)

const (
	// stopLimit is how long each step of the shutdown may take.
	stopLimit = 10 * time.Second
	// stepLimit is how long one step of a loop may take before the liveness probe fails.
	stepLimit = time.Minute
	// drainLimit is how long in-flight probes and scrapes may take at shutdown.
	drainLimit = 3 * time.Second
)

// runtime is the environment of a part of a program. It is owned by the goroutine of run.
type runtime struct {
	// Logger is the logger of the part.
	Logger *slog.Logger
	// Health serves the probes. Checks may be added until the work begins. All parts share it.
	Health *telemetry.Probes

	observed *Telemetry
	connect  bus.ConnectOptions
	// stack is the list of shutdown steps.
	*stack
}

type server struct {
	// Name identifies the server in log lines.
	Name string
	// Addr is the host:port to listen on. Empty means none.
	Addr    string
	Handler http.Handler
	// WriteTimeout is how long a response may take. Zero means the default of telemetry.Options.
	WriteTimeout time.Duration
}

// Tracer returns the tracer of a package of this module, such as "sources".
func (r *runtime) Tracer(pkg string) trace.Tracer {
	return r.observed.TracerProvider.Tracer(scope(pkg))
}

// Meter returns the meter of a package of this module, such as "sources".
func (r *runtime) Meter(pkg string) metric.Meter { return r.observed.MeterProvider.Meter(scope(pkg)) }

func scope(pkg string) string { return "github.com/keyturn/keyturn/internal/" + pkg }

// Progress returns a new progress for a loop, which the liveness probe checks under the name.
func (r *runtime) Progress(name string) *telemetry.Progress {
	progress := telemetry.NewProgress(time.Now, stepLimit)
	r.Health.AddLiveness(name, progress.Check)
	return progress
}

// Connect connects to NATS, retrying until ctx ends. The connection is drained at shutdown. Further options override those of the flags.
func (r *runtime) Connect(ctx context.Context, further ...nats.Option) (*nats.Conn, error) {
	connection, err := bus.Connect(ctx, r.connect, further...)
	if err != nil {
		return nil, err
	}
	r.OnStop("nats", func(ctx context.Context) error { return bus.Drain(ctx, connection) })
	return connection, nil
}

// serve runs a server until shutdown. The bound address is logged as "addr". An empty address means that the server is off.
func (r *runtime) serve(ctx context.Context, s server) error {
	if s.Addr == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("serving %s: listening: %w", s.Name, err)
	}
	logger := r.Logger.With("component", s.Name)
	logger.InfoContext(ctx, "listening", "addr", listener.Addr().String())
	r.Go(ctx, s.Name+" server", func(serving context.Context) error {
		err := telemetry.Serve(serving, listener, telemetry.Options{
			Handler: s.Handler, Logger: logger, ErrorLevel: slog.LevelWarn, Drain: drainLimit, WriteTimeout: s.WriteTimeout,
		})
		if err != nil && serving.Err() == nil {
			logger.ErrorContext(serving, "server failed", "err", err)
			return nil // it is in the log
		}
		return err
	})
	return nil
}
