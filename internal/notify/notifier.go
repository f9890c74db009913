package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// Options configure a Notifier.
type Options struct {
	// ConfigFile defines the sinks. It and the files that it names are read once, by New. Empty means no sinks.
	ConfigFile string
	// Alert is a further sink, see AlertFrom. Nil means none.
	Alert *Alert
	// Logger and Meter are required.
	Logger *slog.Logger
	Meter  metric.Meter
	// transport carries the requests. Nil, as outside tests, means a transport that uses the proxies of the environment.
	transport http.RoundTripper
}

// AddFlags adds the flag of ConfigFile.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "notify-config", "",
		"`file` with the chat channels and webhooks that receive outcomes; empty disables notifications")
}

// Notifier sends outcomes to sinks.
type Notifier struct{ sinks []*sink }

// New reads the configuration. The error has a line for each problem and contains no secret.
func New(options Options) (*Notifier, error) {
	n := &Notifier{}
	if options.ConfigFile == "" && options.Alert == nil {
		return n, nil
	}
	problems := n.readSinks(options)
	if options.Alert != nil {
		s, err := newAlertSink(options.Alert, options.transport)
		switch {
		case err != nil:
			problems = append(problems, err)
		case slices.ContainsFunc(n.sinks, func(s *sink) bool { return s.name == alertName }):
			problems = append(problems,
				fmt.Errorf("--notify-config: has a sink named %q, which is that of ALERT_ON_RELOAD, want another name", alertName))
		default:
			n.sinks = append(n.sinks, s)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	metrics, err := newMetrics(options.Meter)
	if err != nil {
		return nil, err
	}
	for _, s := range n.sinks {
		s.log, s.metrics = options.Logger.With("component", "notify", "sink", s.name, "type", s.kind), metrics
	}
	return n, nil
}

func (n *Notifier) readSinks(options Options) (problems []error) {
	if options.ConfigFile == "" {
		return nil
	}
	content, err := os.ReadFile(options.ConfigFile)
	if err != nil {
		return []error{fmt.Errorf("--notify-config: %w", err)}
	}
	configs, err := parseConfig(content)
	if err != nil {
		return []error{err}
	}
	client := newClient(options.transport)
	for i, c := range configs {
		s, err := newSink(c, client)
		if err != nil {
			problems = append(problems, fmt.Errorf("--notify-config: sinks[%d].%w", i, err))
			continue
		}
		n.sinks = append(n.sinks, s)
	}
	return problems
}

// Run sends outcomes to the sinks until ctx is done. It interrupts in-flight requests; the next Run sends their messages again. It may be called
// repeatedly.
func (n *Notifier) Run(ctx context.Context, b *bus.Bus) {
	var running sync.WaitGroup
	for _, s := range n.sinks {
		running.Go(func() { s.run(ctx, b) })
	}
	running.Wait()
	for _, s := range n.sinks {
		s.poster.client.CloseIdleConnections()
	}
}

// result is the result of one attempt to send a message. It is a metric label.
type result string

const (
	resultSent    result = "sent"
	resultRetried result = "retried"
	resultParked  result = "parked"
	resultRefused result = "refused"
	resultGivenUp result = "given-up"
	// resultLost means that there will be no further attempt, because the outcome is gone.
	resultLost result = "lost"
)

type metrics struct{ notifications metric.Int64Counter }

// instruments defines the metrics. The label sink has few values: the sinks of the configuration.
func (m *metrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&m.notifications, "keyturn.notifications", "{notification}",
			"Attempts to send a notification: sent, retried soon, parked to be retried later, refused or given-up. "+
				"And parked ones that are lost because HISTORY has dropped their outcome.", "sink", "type", "result"),
	}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, telemetry.MakeInstruments(meter, m.instruments())
}

func (m *metrics) count(ctx context.Context, sink, kind string, of result, messages int) {
	m.notifications.Add(ctx, int64(messages), metric.WithAttributes(
		attribute.String("sink", sink), attribute.String("type", kind), attribute.String("result", string(of))))
}
