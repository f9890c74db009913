package actuate

import (
	"context"
	"log/slog"

	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
)

// syncHost returns what the force-sync needs from the actuator.
func syncHost(options Options, log *slog.Logger, metrics *metrics, reporter *reporter) forcesync.Host {
	return forcesync.Host{
		Cluster: options.Cluster, DryRun: options.DryRun, MaxSyncs: options.MaxSyncs, Alone: len(options.Namespaces) == 1,
		Client: options.Dynamic, Log: log, Tracer: options.Tracer, Now: options.Now,
		Publish: reporter.outbox.add, Warn: reporter.warn,
		Metrics: forcesync.Metrics{
			Active:      metrics.syncing,
			Finished:    metrics.synced,
			PatchFailed: func(ctx context.Context) { metrics.patchFailed(ctx, forcesync.Kind) },
		},
	}
}

// syncWatch returns the watch of the ExternalSecrets, for whose first lists readiness waits too.
func syncWatch(options Options, index *forcesync.Index, known *inventory.Inventory, log *slog.Logger) *forcesync.Watch {
	watch := forcesync.NewWatch(forcesync.WatchOptions{
		Client: options.Dynamic, Namespaces: known.Scopes(), Ignored: options.IgnoreNamespaces,
		Log: log, Listed: known.Listed, Denied: known.Denied,
	}, index)
	for _, resource := range watch.Resources() {
		known.Expect(resource)
	}
	return watch
}
