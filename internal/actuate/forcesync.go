package actuate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
)

// syncHost returns what the force-sync needs of the actuator.
func syncHost(options Options, metrics *metrics, reporter *reporter) forcesync.Host {
	return forcesync.Host{
		Cluster: options.Cluster, DryRun: options.DryRun, MaxSyncs: options.MaxSyncs, Timeout: options.SyncTimeout,
		Client: options.Dynamic, Log: reporter.log, Tracer: options.Tracer, Now: options.Now,
		Publish: func(outcome events.Outcome) { reporter.await(report{outcome: outcome}) },
		Warn: func(ctx context.Context, outcome events.Outcome, reason, message string) {
			reporter.kube.write(ctx, outcome.Workload, corev1.EventTypeWarning, reason, message, tracedBy(outcome))
		},
		Metrics: forcesync.Metrics{
			Active:      metrics.syncing,
			Finished:    func(ctx context.Context, reason string, took time.Duration) { metrics.synced(ctx, reason, took) },
			PatchFailed: func(ctx context.Context) { metrics.patchFailed(ctx, forcesync.Kind) },
		},
	}
}

// syncWatch returns the watch of the ExternalSecrets, for whose first lists readiness waits too.
func syncWatch(options Options, index *forcesync.Index, reflectors *reflectors) *forcesync.Watch {
	watch := forcesync.NewWatch(forcesync.WatchOptions{
		Client: options.Dynamic, Namespaces: reflectors.namespaces, Log: reflectors.log, Listed: reflectors.listed, Denied: reflectors.denied,
	}, index)
	for _, resource := range watch.Resources() {
		reflectors.expect(resource)
	}
	return watch
}

// syncedTicket is a ticket as the force-sync sees it. Each ExternalSecret counts like a workload.
type syncedTicket struct {
	*ticket
	settle func(context.Context, *ticket, error)
}

// Hold counts one more ExternalSecret that is not done.
func (s syncedTicket) Hold() { s.open++ }

// Release counts one less, and settles the ticket after the last.
func (s syncedTicket) Release(ctx context.Context, err error) {
	if err != nil {
		s.err = err
	}
	s.open--
	if s.open == 0 {
		s.settle(ctx, s.ticket, s.err)
	}
}
