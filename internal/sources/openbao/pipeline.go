package openbao

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// pipeline detects the changes of one store: audit lines enter through the intake, polls find the other changes, and both report to an outlet.
type pipeline struct {
	config     *storeConfig
	origin     origin
	intake     *intake
	polls      pollRequests
	client     *client
	catalog    catalog
	references *sharedReferences
	status     *status
	metrics    *metrics
	log        *slog.Logger
	now        func() time.Time
}

func newPipeline(config *storeConfig, o *Options, m *metrics) (*pipeline, error) {
	log := o.Logger.With("store", config.Name)
	p := &pipeline{
		config: config, origin: origin{store: config.Name, servers: config.servers}, polls: newPollRequests(),
		catalog: catalog{store: config.Name, known: o.Known},
		status:  newStatus(log, o.Now), metrics: m, log: log, now: o.Now,
	}
	p.intake = &intake{
		store: config.Name, looks: newLooks(), polls: p.polls, status: p.status, metrics: m,
		recent: newRecentRequests(), bodies: make(chan struct{}, maxBodies), now: o.Now,
	}
	connecting, err := newStoreTransport(&config.TLS, o)
	if err != nil {
		return nil, err
	}
	p.client, err = newClient(config, cmp.Or[http.RoundTripper](o.Transport, connecting), o.Now, log)
	return p, err
}

// ready returns nil once everything that is polled was read or cannot be read now. A store that is down must not prevent the sources in the cluster
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
	out := &outlet{sink: sink, status: p.status}
	defer p.client.close()
	mounts := newMountTable(p.client)
	metadata := &metadataReader{origin: p.origin, client: p.client, mounts: mounts, rotations: newRotations(p.client, p.now)}
	follow := &follower{
		looks: p.intake.looks, origin: p.origin, metadataReader: metadata, mounts: mounts,
		outlet: out, status: p.status, polls: p.polls, now: p.now,
	}
	var group sync.WaitGroup
	group.Go(func() { p.client.session.run(ctx) })
	group.Go(func() { follow.run(ctx) })
	if p.config.Poll.enabled() {
		polled := &outlet{sink: sink, status: p.status, polled: newPollTimes(p.client)}
		sweeper := p.newSweeper(metadata, polled)
		poll := &poller{
			store: p.config.Name, interval: p.config.interval, requests: p.polls, sweep: sweeper.sweep,
			rotations: metadata.rotations, readRoles: sweeper.readRoles, status: p.status, metrics: p.metrics, now: p.now,
		}
		group.Go(func() { poll.run(ctx) })
	}
	group.Wait()
}

func (p *pipeline) newSweeper(metadata *metadataReader, out *outlet) *sweeper {
	bulk := &bulkReader{metadataReader: metadata, outlet: out, status: p.status, note: p.status.noteFailure}
	s := &sweeper{
		namespace: orDefault(p.config.Namespace, events.RootNamespace), config: p.config.Poll,
		client: p.client, mounts: metadata.mounts, bulk: bulk, catalog: p.catalog, outlet: out, status: p.status,
		scanner: newScanner(p.origin, p.client, bulk.tolerate, p.log),
	}
	if p.config.Poll.Referenced {
		list := func(ctx context.Context) ([]Reference, error) { return p.references.list(ctx, p.config.interval/2) }
		bulk := &bulkReader{metadataReader: metadata, outlet: out, status: p.status, note: p.status.noteReferenceFailure}
		s.references = &referenceReader{origin: p.origin, list: list, bulk: bulk, catalog: p.catalog, outlet: out, now: p.now}
	}
	return s
}
