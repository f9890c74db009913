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

// Options are what a Notifier is made of.
type Options struct {
	// ConfigFile says who is told of what. It and the files that it names are read when the program starts. Empty: nobody is.
	ConfigFile string
	// Logger and Meter are what the notifier tells about itself with. Required.
	Logger *slog.Logger
	Meter  metric.Meter
	// Transport carries the requests. Nil: a transport that asks the environment for proxies.
	Transport http.RoundTripper
}

// AddFlags binds the option that is a flag.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "notify-config", "", "`file` with the chat channels and webhooks that are told what became of changes; empty is none")
}

// Notifier tells sinks what became of changes. Make one with New.
type Notifier struct {
	sinks  []*sink
	client *http.Client
}

// New reads the configuration. An error has a line for each thing that is wrong with it, and no secret.
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

// newSink makes a sink of a configuration that parseConfig has checked, and reads the files that it names.
func newSink(c sinkConfig, client *http.Client) (*sink, error) {
	s := &sink{
		name: c.Name, kind: c.Type, verbs: c.Verbs, namespaces: c.Namespaces, format: formats[c.Type], backoff: exponential,
		limiter: rate.NewLimiter(rate.Every(time.Minute/time.Duration(c.Rate.PerMinute)), burst),
		poster:  &poster{client: client, header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"keyturn-actuator"}}, now: time.Now},
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

// Run tells the sinks what comes until ctx is done. It returns when nothing is under way any more; a request that is, is
// interrupted, and its message sent again by the next Run. It may be called again.
func (n *Notifier) Run(ctx context.Context, bus *events.Bus) {
	var running sync.WaitGroup
	for _, s := range n.sinks {
		running.Go(func() { s.run(ctx, bus) })
	}
	running.Wait()
	n.client.CloseIdleConnections()
}
