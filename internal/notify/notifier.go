package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
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
type Notifier struct {
	sinks  []*sink
	client *http.Client
}

// New reads the configuration. The error has a line for each problem and contains no secret.
func New(options Options) (*Notifier, error) {
	n := &Notifier{client: newClient(options.Transport)}
	if options.ConfigFile == "" {
		return n, nil
	}
	content, err := os.ReadFile(options.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--notify-config: %w", err)
	}
	configs, err := parseConfig(content)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(options.Meter)
	if err != nil {
		return nil, err
	}
	var problems []error
	for i, c := range configs {
		s, err := newSink(c, n.client)
		if err != nil {
			problems = append(problems, fmt.Errorf("--notify-config: sinks[%d].%w", i, err))
			continue
		}
		s.log = options.Logger.With("component", "notify", "sink", s.name, "type", s.kind)
		s.metrics = metrics
		n.sinks = append(n.sinks, s)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return n, nil
}

// newSink returns the sink of a configuration that parseConfig has checked. It reads the files that the configuration names.
func newSink(c sinkConfig, client *http.Client) (*sink, error) {
	s := &sink{
		name: c.Name, kind: c.Type, verbs: c.Verbs, namespaces: c.Namespaces, format: formats[c.Type],
		backoff: newBackoff(), parking: newParking(),
		limiter: rate.NewLimiter(rate.Every(time.Minute/time.Duration(c.Rate.PerMinute)), burst),
		poster: &poster{
			client: client, now: time.Now,
			header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"keyturn-actuator"}},
		},
	}
	var err error
	if s.template, err = newTemplate(c.Template); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	field, address := "url", c.URL
	if c.URLFile != "" {
		field = "urlFile"
		if address, err = readSecret(c.URLFile); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	if s.poster.address, err = s.format.address(address); err != nil {
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
	n.client.CloseIdleConnections()
}
