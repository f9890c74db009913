package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"

	"github.com/keyturn/keyturn/internal/events"
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
	// Transport carries the requests. Nil means a transport that uses the proxies of the environment.
	Transport http.RoundTripper
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
	var problems []error
	if options.ConfigFile != "" {
		var err error
		if n.sinks, err = readSinks(options); err != nil {
			problems = append(problems, err)
		}
	}
	if options.Alert != nil {
		s, err := newAlertSink(options.Alert, options.Transport)
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

// readSinks returns the sinks of the configuration file.
func readSinks(options Options) ([]*sink, error) {
	content, err := os.ReadFile(options.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--notify-config: %w", err)
	}
	configs, err := parseConfig(content)
	if err != nil {
		return nil, err
	}
	var sinks []*sink
	var problems []error
	client := newClient(options.Transport)
	for i, c := range configs {
		s, err := newSink(c, client)
		if err != nil {
			problems = append(problems, fmt.Errorf("--notify-config: sinks[%d].%w", i, err))
			continue
		}
		sinks = append(sinks, s)
	}
	return sinks, errors.Join(problems...)
}

// madeSink returns a sink without an address, that posts JSON.
func madeSink(name, kind string, perMinute int, client *http.Client) *sink {
	return &sink{
		name: name, kind: kind, backoff: newBackoff(), parking: newParking(), look: lookInterval, parked: &parked{},
		limiter: rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), burst),
		poster: &poster{
			client: client, now: time.Now, timeout: sendTimeout,
			header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"keyturn-actuator"}},
		},
	}
}

// newSink returns the sink of a configuration that parseConfig has checked. It reads the files that the configuration names.
func newSink(c sinkConfig, client *http.Client) (*sink, error) {
	s, format := madeSink(c.Name, c.Type, c.Rate.PerMinute, client), formats[c.Type]
	s.verbs, s.namespaces, s.heldReasons = c.Verbs, c.Namespaces, c.HeldReasons
	text, err := newTemplate(c.Template)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	s.body = func(o events.Outcome) ([]byte, error) { return format.message(text, o) }
	field, address := "url", c.URL
	if c.URLFile != "" {
		field = "urlFile"
		if address, err = readSecret(c.URLFile); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	if s.poster.address, err = format.address(address); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	for i, header := range c.Headers {
		value := header.Value
		if header.File != "" {
			at := "headers[" + strconv.Itoa(i) + "].file"
			if value, err = readSecret(header.File); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			if value == "" || !isHeaderValue(value) {
				return nil, fmt.Errorf("%s: the content of %s cannot be a header, want one line of text", at, header.File)
			}
		}
		s.poster.header.Set(header.Name, value)
	}
	return s, nil
}

// Run sends outcomes to the sinks until ctx is done. It interrupts requests that are in flight; the next Run sends their
// messages again. It may be called repeatedly.
func (n *Notifier) Run(ctx context.Context, bus *events.Bus) {
	var running sync.WaitGroup
	for _, s := range n.sinks {
		running.Go(func() { s.run(ctx, bus) })
	}
	running.Wait()
	for _, s := range n.sinks {
		s.poster.client.CloseIdleConnections()
	}
}
