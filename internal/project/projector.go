package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// Options configures a Projector. All fields are required unless they say otherwise.
type Options struct {
	// ConfigFile is the file with the kinds, their fields, and the Secrets.
	ConfigFile string
	// Resync is how often all resources are compared again, independently of events. The default is 10 minutes, the minimum 1 second.
	Resync time.Duration

	// Client reads Secrets and writes Kubernetes Events. Dynamic watches and writes the resources. It must not log warnings, which may quote values.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Random is crypto/rand.Reader, and Now is time.Now, except in tests.
	Random io.Reader
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
	Meter  metric.Meter
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Resync: 10 * time.Minute} }

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ConfigFile, "projections-config", o.ConfigFile,
		"`file` with the kinds, their fields, and the Secrets whose values these may have (docs/how-to/project-values.md); required")
	flags.DurationVar(&o.Resync, "resync", o.Resync, "how often all resources and their Secrets are compared again, independently of events")
}

// Validate returns an error for an invalid field. It does not read the file, which New does.
func (o *Options) Validate() error {
	switch {
	case o.ConfigFile == "":
		return errors.New("--projections-config: is empty, want a file")
	case o.Resync < time.Second:
		return fmt.Errorf("--resync: %s, want at least 1s", o.Resync)
	}
	return nil
}

// listPatience bounds how long events wait for the first lists, in case the API server never completes one.
const listPatience = 10 * time.Second

// Projector gives resources the values of Secrets that they want. Create one with New.
type Projector struct {
	options    Options
	kinds      []*kind
	reflectors *reflectors
	loop       *loop
}

// New returns a Projector. The error has a line for each problem in the configuration.
func New(o Options) (*Projector, error) {
	content, err := os.ReadFile(o.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--projections-config: %w", err)
	}
	kinds, err := parseConfig(content)
	if err != nil {
		return nil, err
	}
	digests, err := newDigests(o.Random)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Meter)
	if err != nil {
		return nil, err
	}
	l := &loop{
		reporter: &reporter{client: o.Client, metrics: metrics, tracer: o.Tracer, log: o.Logger, now: o.Now},
		log:      o.Logger, now: o.Now, items: make(map[key]*item),
		queue: workqueue.NewTypedDelayingQueue[key](), left: make(chan events.Projection, maxLeft),
	}
	l.index = newIndex(digests, l.queue.Add)
	l.apply = &applier{client: o.Client, dynamic: o.Dynamic, index: l.index}
	return &Projector{options: o, kinds: kinds, reflectors: newReflectors(o.Dynamic, l.index, kinds, o.Logger), loop: l}, nil
}

// Ready returns nil after all resources have been listed, and before that an error about the missing ones.
func (p *Projector) Ready() error { return p.reflectors.lists.Ready() }

// Run gives resources their values until ctx ends.
func (p *Projector) Run(ctx context.Context, b *bus.Bus) error {
	p.loop.reporter.bus = b
	var running sync.WaitGroup
	defer p.loop.giveBack(context.WithoutCancel(ctx))
	defer running.Wait()
	defer p.loop.queue.ShutDown()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, k := range p.kinds {
		for _, namespace := range k.namespaces() {
			running.Go(func() { p.reflectors.reflect(ctx, k, namespace) })
		}
	}
	for range workers {
		running.Go(func() { p.loop.run(ctx) })
	}
	running.Go(func() { p.loop.publishLeft(ctx) })
	running.Go(func() { p.resync(ctx) })
	// Wait for the lists: an event that arrives before its resources are known is acked, and their values then have no link to its trace. Kinds that
	// cannot be listed do not delay others.
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	select {
	case <-p.reflectors.answered.Done():
	case <-patience.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	durable := "projector-" + b.Cluster()
	// Consume the changes of all Secrets: NATS permissions for a filter per Secret could not be written in advance.
	options := bus.ConsumeOptions{
		Durable: durable, FilterSubjects: []string{events.KindFilter(b.Cluster(), events.KindSecret)}, WithoutDeadLetters: true,
	}
	if err := b.Consume(ctx, options, func(ctx context.Context, d *bus.Delivery) { p.receive(ctx, durable, d) }); err != nil {
		return err
	}
	return ctx.Err()
}

// receive queues the resources that want the Secret of a change.
func (p *Projector) receive(ctx context.Context, durable string, d *bus.Delivery) {
	of := source{namespace: d.Change.Source.Namespace, name: d.Change.Source.Name}
	keys := p.loop.index.all(func(t *target) bool { return t.reads(of) })
	if len(keys) == 0 {
		d.Done(ctx, nil)
		return
	}
	c := newCause(d, d.StartProcess(context.WithoutCancel(ctx), p.options.Tracer, durable), len(keys))
	for _, k := range keys {
		p.loop.add(k, c)
	}
}

func (p *Projector) resync(ctx context.Context) {
	for kube.Sleep(ctx, p.options.Resync) {
		for _, k := range p.loop.index.all(func(*target) bool { return true }) {
			p.loop.queue.Add(k)
		}
	}
}
