package openbao

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Feed detects changes in OpenBao and Vault stores.
type Feed struct {
	options   Options
	pipelines []*pipeline
	receiver  *httpReceiver // nil if there is none
	listening atomic.Bool
}

// New returns a feed. It reads the configuration and all files that it names, and reports all their problems. It neither listens nor connects.
func New(o Options) (*Feed, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f := &Feed{options: o}
	if !o.Enabled() {
		return f, nil
	}
	config, err := loadConfig(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("making the metrics: %w", err)
	}
	references := &sharedReferences{options: &f.options}
	for i := range config.Stores {
		p, err := newPipeline(&config.Stores[i], &f.options, references, m)
		if err != nil {
			return nil, fmt.Errorf("--openbao-config: %s: stores[%d]: %w", o.ConfigFile, i, err)
		}
		f.pipelines = append(f.pipelines, p)
	}
	return f, f.expose(m, config.Audit)
}

// expose makes the HTTP receiver, with its files, and the gauges of all stores.
func (f *Feed) expose(m *metrics, files auditConfig) error {
	intakes, statuses := map[string]*intake{}, map[string]*status{}
	for _, p := range f.pipelines {
		intakes[p.config.Name], statuses[p.config.Name] = p.intake, p.status
	}
	if f.options.AuditListen != "" {
		var err error
		if f.receiver, err = newHTTPReceiver(files, &f.options, intakes); err != nil {
			return fmt.Errorf("--openbao-config: %s: audit.%w", f.options.ConfigFile, err)
		}
		for store, s := range statuses {
			if f.receiver.bearers.has(store) {
				s.noteLine(f.options.Now()) // If no line ever arrives, the silence began now.
			}
		}
	}
	if err := m.watch(f.options.Meter, statuses); err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	return nil
}

// Run passes observations to the sink until ctx is done, and then returns nil. An error means that the receiver cannot listen. Run must be called
// only once. The sink is called from several goroutines at once and must not block. If it returns false, it has no room, and gets the observation
// again soon.
func (f *Feed) Run(ctx context.Context, sink func(Observation) bool) error {
	var listener net.Listener
	if f.receiver != nil {
		var err error
		if listener, err = f.options.Listen(ctx, "tcp", f.options.AuditListen); err != nil {
			return fmt.Errorf("listening for audit requests: %w", err)
		}
	}
	f.listening.Store(true)
	defer f.listening.Store(false)
	// The others outlive the receiver, so that everything that it received is observed.
	working, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	var others sync.WaitGroup
	for _, p := range f.pipelines {
		others.Go(func() { p.run(working, sink) })
	}
	var err error
	if listener != nil {
		err = f.receiver.serve(ctx, listener)
	} else {
		<-ctx.Done()
	}
	finish()
	others.Wait()
	return err
}

// Ready returns nil once the receiver listens, each polled store was read or could not be read, and the permission to list references is not missing:
// a store that is down must not prevent other sources from being watched. Otherwise, the error names what is missing, one line for each store.
func (f *Feed) Ready() error {
	if !f.options.Enabled() {
		return nil
	}
	if !f.listening.Load() {
		return errors.New("the audit receiver does not listen yet")
	}
	var missing []error
	for _, p := range f.pipelines {
		if err := p.status.unpolled(); err != nil && p.config.Poll.enabled() {
			missing = append(missing, fmt.Errorf("store %s: %w", p.config.Name, err))
		}
	}
	return errors.Join(missing...)
}

// pipeline detects the changes of one store.
type pipeline struct {
	config     *storeConfig
	options    *Options
	references *sharedReferences
	intake     *intake
	client     *client
	status     *status
	metrics    *metrics
}

func newPipeline(config *storeConfig, o *Options, references *sharedReferences, m *metrics) (*pipeline, error) {
	if config.Poll.Referenced && o.Referenced == nil {
		return nil, errors.New("poll.referenced: no source of references here, want poll.mounts")
	}
	log := o.Logger.With("store", config.Name)
	transport, err := newReloaded[http.Transport](&transportFiles{config: &config.TLS}, o)
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, cmp.Or[http.RoundTripper](o.Transport, &storeTransport{transport}), o.Now, log)
	s := newStatus(log, o.Now)
	in := newIntake(config.Name, s, m, o.Now)
	in.omitsAuthors = config.OmitAuthors
	return &pipeline{
		config: config, options: o, references: references, intake: in, client: c, status: s, metrics: m,
	}, err
}

func (p *pipeline) run(ctx context.Context, sink func(Observation) bool) {
	defer p.client.close()
	out := newOutlet(sink, p.status, p.client)
	metadata := &metadataReader{
		config: p.config, client: p.client, mounts: newMountTable(p.client), rotations: newLooks(),
	}
	follow := &follower{
		looks: p.intake.looks, metadata: metadata, outlet: out, status: p.status, polls: p.intake.polls, now: p.options.Now,
	}
	var group sync.WaitGroup
	if p.config.Poll.enabled() {
		metadata.horizon = 2 * p.config.interval
		poll := &poller{
			config: p.config, requests: p.intake.polls, metadata: metadata, outlet: out, references: p.references, status: p.status,
			metrics: p.metrics, options: p.options, ways: map[mountName]*scanWay{},
		}
		group.Go(func() { poll.run(ctx) })
	}
	group.Go(func() { p.client.session.run(ctx) })
	group.Go(func() { follow.run(ctx) })
	group.Wait()
}
