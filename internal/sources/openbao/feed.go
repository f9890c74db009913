package openbao

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Feed detects changes in OpenBao and Vault stores.
type Feed struct {
	options    Options
	references *sharedReferences // of all stores
	pipelines  []*pipeline
	receiver   *httpReceiver // nil if there is none
	listening  atomic.Bool
}

// New returns a feed. It reads the configuration and every file that the configuration names, and reports everything that is wrong with
// them. It neither listens nor connects.
func New(o Options) (*Feed, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	defaults := DefaultOptions()
	if o.Now == nil {
		o.Now = defaults.Now
	}
	if o.Listen == nil {
		o.Listen = defaults.Listen
	}
	f := &Feed{options: o, references: newSharedReferences(o.Referenced, o.Now)}
	if !o.Enabled() {
		return f, nil
	}
	configs, err := loadConfig(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("making the metrics: %w", err)
	}
	for i := range configs {
		if err := f.add(&configs[i], m); err != nil {
			return nil, fmt.Errorf("--openbao-config: %s: stores[%d]: %w", o.ConfigFile, i, err)
		}
	}
	return f, f.expose(m)
}

// add makes the pipeline of a store.
func (f *Feed) add(config *storeConfig, m *metrics) error {
	if config.Poll.Referenced && f.options.Referenced == nil {
		return errors.New("poll.referenced: no source of references here, want poll.mounts")
	}
	p, err := newPipeline(config, &f.options, m)
	if err != nil {
		return err
	}
	p.references = f.references
	f.pipelines = append(f.pipelines, p)
	return nil
}

// expose makes the HTTP receiver and the gauges of all stores.
func (f *Feed) expose(m *metrics) error {
	intakes, statuses := map[string]*intake{}, map[string]*status{}
	for _, p := range f.pipelines {
		intakes[p.config.Name], statuses[p.config.Name] = p.intake, p.status
	}
	if f.options.AuditListen != "" {
		var err error
		if f.receiver, err = newHTTPReceiver(&f.options, intakes); err != nil {
			return err
		}
	}
	for _, p := range f.pipelines {
		if f.receiver != nil && f.receiver.bearers.has(p.config.Name) {
			p.status.expectLines()
		}
	}
	if err := m.watch(f.options.Meter, statuses); err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	return nil
}

// Run passes observations to the sink until ctx is done, and then returns nil. An error means that the receiver cannot listen. Run must be
// called only once. The sink is called from several goroutines at once and must not block. It returns false if it has no room; then the observation
// is offered again soon.
func (f *Feed) Run(ctx context.Context, sink func(Observation) bool) error {
	serve, err := f.listen(ctx)
	if err != nil {
		return err
	}
	f.listening.Store(true)
	defer f.listening.Store(false)
	// The others outlive the receiver, so that everything that was received is observed.
	working, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	var others sync.WaitGroup
	for _, p := range f.pipelines {
		others.Go(func() { p.run(working, sink) })
	}
	err = serve(ctx)
	finish()
	others.Wait()
	return err
}

// listen opens the listener of the receiver and returns the function that serves it until ctx is done. Without a receiver, that only waits.
func (f *Feed) listen(ctx context.Context) (serve func(context.Context) error, err error) {
	if f.receiver == nil {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	listener, err := f.options.Listen(ctx, "tcp", f.options.AuditListen)
	if err != nil {
		return nil, fmt.Errorf("listening for audit requests: %w", err)
	}
	return func(ctx context.Context) error { return f.receiver.serve(ctx, listener) }, nil
}

// Ready returns nil once the receiver listens and each polled store was read or could not be read, and listing the references is not denied.
// Otherwise the error names what is missing, one line for each store.
func (f *Feed) Ready() error {
	if !f.options.Enabled() {
		return nil
	}
	if !f.listening.Load() {
		return errors.New("the audit receiver does not listen yet")
	}
	var missing []error
	for _, p := range f.pipelines {
		if err := p.ready(); err != nil {
			missing = append(missing, fmt.Errorf("store %s: %w", p.config.Name, err))
		}
	}
	return errors.Join(missing...)
}
