package openbao

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// pipeline detects the changes of one store: audit lines enter through the intake, and a follower looks at their paths; a poller finds the other
// changes.
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
	connecting, err := newStoreTransport(&config.TLS, o)
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, cmp.Or[http.RoundTripper](o.Transport, connecting), o.Now, log)
	if err != nil {
		return nil, err
	}
	s := newStatus(log, o.Now)
	return &pipeline{
		config: config, options: o, references: references, intake: newIntake(config.Name, s, m, o.Now), client: c, status: s, metrics: m,
	}, nil
}

// ready returns nil after everything that is polled was read or cannot be read now. A store that is down must not prevent the sources in the cluster
// and the lines of other stores from being watched. A permission that is missing in the cluster does keep the feed from being ready, because it is
// a mistake in the installation.
func (p *pipeline) ready() error {
	if !p.config.Poll.enabled() {
		return nil
	}
	return p.status.unpolled()
}

// run observes changes until ctx is done.
func (p *pipeline) run(ctx context.Context, sink func(Observation) bool) {
	defer p.client.close()
	out := newOutlet(sink, p.status, p.client)
	horizon := time.Duration(0)
	if p.config.Poll.enabled() {
		horizon = 2 * p.config.interval
	}
	metadata := &metadataReader{
		origin: origin{store: p.config.Name, servers: p.config.servers}, client: p.client, mounts: newMountTable(p.client),
		looks: p.intake.looks, horizon: horizon,
	}
	follow := &follower{
		looks: p.intake.looks, metadata: metadata, outlet: out, status: p.status, polls: p.intake.polls, now: p.options.Now,
	}
	var group sync.WaitGroup
	group.Go(func() { p.client.session.run(ctx) })
	group.Go(func() { follow.run(ctx) })
	if p.config.Poll.enabled() {
		poll := &poller{
			config: p.config, requests: p.intake.polls, metadata: metadata, outlet: out, references: p.references, status: p.status,
			metrics: p.metrics, options: p.options, ways: map[mountName]scanWay{},
		}
		group.Go(func() { poll.run(ctx) })
	}
	group.Wait()
}
