package openbao

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Feed sees changes in OpenBao and Vault stores.
type Feed struct {
	options   Options
	stores    []*store
	receiver  *receiver // nil: none
	lines     []*lines
	listening atomic.Bool
}

// New makes a feed. It reads the configuration and every file that it names, and reports all that is wrong with them. It
// neither listens nor connects.
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
	f := &Feed{options: o}
	if !o.Enabled() {
		return f, nil
	}
	configs, err := loadConfig(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("making the metrics: %w", err)
	}
	for i := range configs {
		if err := f.add(&configs[i], i, len(configs) == 1, metrics); err != nil {
			return nil, fmt.Errorf("--openbao-config: %s: stores[%d]: %w", o.ConfigFile, i, err)
		}
	}
	if o.SocketListen != "" && len(configs) > 1 {
		return nil, fmt.Errorf("--openbao-socket-listen: %q is for one store, and %s has %d: want socketListen of each store", o.SocketListen, o.ConfigFile, len(configs))
	}
	if o.AuditListen != "" {
		if f.receiver, err = newReceiver(&f.options, f.stores); err != nil {
			return nil, err
		}
	}
	if err := metrics.watch(o.Meter, f.stores); err != nil {
		return nil, fmt.Errorf("making the metrics: %w", err)
	}
	return f, nil
}

// add makes a store and its receiver of lines.
func (f *Feed) add(config *storeConfig, index int, only bool, metrics *metrics) error {
	if config.Poll.Referenced && f.options.Referenced == nil {
		return errors.New("poll.referenced: nobody tells here what is referenced, want poll.mounts")
	}
	if only && config.SocketListen == "" && f.options.SocketListen != "" {
		if err := config.checkSocket(f.options.SocketListen); err != nil {
			return fmt.Errorf("--openbao-socket-listen: %w", err)
		}
		config.SocketListen = f.options.SocketListen
	}
	s, err := newStore(config, &f.options, metrics)
	if err != nil {
		return err
	}
	f.stores = append(f.stores, s)
	if config.SocketListen == "" {
		return nil
	}
	address, err := parseSocketAddress(config.SocketListen)
	f.lines = append(f.lines, &lines{store: s, address: address, log: s.log})
	return err
}

// Run gives observations to the sink until ctx is done, and is nil then. An error means that a receiver cannot listen any
// more. Run is called once.
func (f *Feed) Run(ctx context.Context, sink Sink) error {
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
	others.Go(func() { refreshing(ctx, f.options.Logger, f.refreshers()) })
	// What was received is observed, also what comes in while the receivers end.
	working, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	for _, s := range f.stores {
		others.Go(func() { s.run(working, sink) })
	}
	receivers.Wait()
	<-ctx.Done()
	finish()
	others.Wait()
	close(failures)
	return <-failures
}

// refreshers read again what may have changed in files.
func (f *Feed) refreshers() []refresher {
	var refreshers []refresher
	if f.receiver != nil {
		refreshers = append(refreshers, f.receiver.bearers)
		if f.receiver.keys != nil {
			refreshers = append(refreshers, f.receiver.keys)
		}
	}
	for _, s := range f.stores {
		if s.client != nil && s.client.keys != nil {
			refreshers = append(refreshers, s.client.keys)
		}
	}
	return refreshers
}

// listen opens all listeners, and gives what serves them.
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
			return fail(fmt.Errorf("listening for the audit: %w", err))
		}
		opened = append(opened, listener)
		serving = append(serving, func(ctx context.Context) error { return f.receiver.serve(ctx, listener) })
	}
	for _, l := range f.lines {
		listener, err := l.listen(ctx, f.options.Listen)
		if err != nil {
			return fail(err)
		}
		opened = append(opened, listener)
		serving = append(serving, func(ctx context.Context) error { return l.serve(ctx, listener) })
	}
	return serving, nil
}

// Ready is nil when the receivers listen and each polled store has been read once. Otherwise it says what is missing, a line
// for each store.
func (f *Feed) Ready() error {
	if !f.options.Enabled() {
		return nil
	}
	if !f.listening.Load() {
		return errors.New("the receivers of stores' audit do not listen yet")
	}
	var missing []error
	for _, s := range f.stores {
		if err := s.ready(); err != nil {
			missing = append(missing, fmt.Errorf("store %s: %w", s.config.Name, err))
		}
	}
	return errors.Join(missing...)
}
