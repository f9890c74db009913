package openbao

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Feed detects changes in OpenBao and Vault stores.
type Feed struct {
	options    Options
	references *sharedReferences // of all stores
	pipelines  []*pipeline
	receiver   *httpReceiver // nil if there is none
	sockets    []*socketReceiver
	listening  atomic.Bool
	// refreshInterval is the constant of that name, except in tests.
	refreshInterval time.Duration
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
	f := &Feed{options: o, references: newSharedReferences(o.Referenced, o.Now), refreshInterval: refreshInterval}
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
		if err := f.add(&configs[i], len(configs) == 1, m); err != nil {
			return nil, fmt.Errorf("--openbao-config: %s: stores[%d]: %w", o.ConfigFile, i, err)
		}
	}
	if o.SocketListen != "" && len(configs) > 1 {
		return nil, fmt.Errorf("--openbao-socket-listen: %q is for one store, and %s has %d: want socketListen of each store",
			o.SocketListen, o.ConfigFile, len(configs))
	}
	return f, f.expose(m)
}

// add makes the pipeline of a store and its socket receiver. only means that it is the only store.
func (f *Feed) add(config *storeConfig, only bool, m *metrics) error {
	if config.Poll.Referenced && f.options.Referenced == nil {
		return errors.New("poll.referenced: no source of references here, want poll.mounts")
	}
	if only && config.SocketListen == "" && f.options.SocketListen != "" {
		if err := config.checkSocket(f.options.SocketListen); err != nil {
			return fmt.Errorf("--openbao-socket-listen: %w", err)
		}
		config.SocketListen = f.options.SocketListen
	}
	p, err := newPipeline(config, &f.options, m)
	if err != nil {
		return err
	}
	p.references = f.references
	f.pipelines = append(f.pipelines, p)
	if config.SocketListen == "" {
		return nil
	}
	address, err := parseSocketAddress(config.SocketListen)
	f.sockets = append(f.sockets, &socketReceiver{intake: p.intake, address: address, peers: config.peers, log: p.log})
	return err
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
		if p.config.SocketListen != "" || f.receiver != nil && f.receiver.bearers.has(p.config.Name) {
			p.status.expectLines()
		}
	}
	if err := m.watch(f.options.Meter, statuses); err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	return nil
}

// Run passes observations to the sink until ctx is done, and then returns nil. An error means that a receiver can no longer listen. Run must be
// called only once. The sink is called from several goroutines at once and must not block. It returns false if it has no room; then the observation
// is offered again soon.
func (f *Feed) Run(ctx context.Context, sink func(Observation) bool) error {
	serving, err := f.listen(ctx)
	if err != nil {
		return err
	}
	f.listening.Store(true)
	defer f.listening.Store(false)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var receivers, others sync.WaitGroup
	failures := make(chan error, len(serving))
	for _, serve := range serving {
		receivers.Go(func() {
			if err := serve(ctx); err != nil {
				failures <- err
				stop()
			}
		})
	}
	others.Go(func() { refreshing(ctx, f.options.Logger, f.refreshInterval, f.refreshers()) })
	// The pipelines outlive the receivers, so that everything that was received is observed.
	working, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	for _, p := range f.pipelines {
		others.Go(func() { p.run(working, sink) })
	}
	receivers.Wait()
	<-ctx.Done()
	finish()
	others.Wait()
	close(failures)
	return <-failures
}

// refreshers returns everything that is reloaded from files.
func (f *Feed) refreshers() []refresher {
	var refreshers []refresher
	if f.receiver != nil {
		refreshers = append(refreshers, f.receiver.bearers)
		if f.receiver.keys != nil {
			refreshers = append(refreshers, f.receiver.keys)
		}
	}
	for _, p := range f.pipelines {
		if p.connecting != nil {
			refreshers = append(refreshers, p.connecting)
		}
	}
	return refreshers
}

// listen opens all listeners and returns the functions that serve them.
func (f *Feed) listen(ctx context.Context) ([]func(context.Context) error, error) {
	var serving []func(context.Context) error
	var opened []net.Listener
	fail := func(err error) ([]func(context.Context) error, error) {
		for _, listener := range opened {
			listener.Close()
		}
		return nil, err
	}
	if f.receiver != nil {
		listener, err := f.options.Listen(ctx, "tcp", f.options.AuditListen)
		if err != nil {
			return fail(fmt.Errorf("listening for audit requests: %w", err))
		}
		opened = append(opened, listener)
		serving = append(serving, func(ctx context.Context) error { return f.receiver.serve(ctx, listener) })
	}
	for _, socket := range f.sockets {
		listener, err := socket.listen(ctx, f.options.Listen)
		if err != nil {
			return fail(err)
		}
		opened = append(opened, listener)
		serving = append(serving, func(ctx context.Context) error { return socket.serve(ctx, listener) })
	}
	return serving, nil
}

// Ready returns nil once the receivers listen and each polled store was read or could not be read, and listing the references is not denied.
// Otherwise the error names what is missing, one line for each store.
func (f *Feed) Ready() error {
	if !f.options.Enabled() {
		return nil
	}
	if !f.listening.Load() {
		return errors.New("the audit receivers do not listen yet")
	}
	var missing []error
	for _, p := range f.pipelines {
		if err := p.ready(); err != nil {
			missing = append(missing, fmt.Errorf("store %s: %w", p.config.Name, err))
		}
	}
	return errors.Join(missing...)
}
