package actuate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
)

// syncHost returns what the force-sync needs from the actuator.
func syncHost(options Options, reporter *reporter) forcesync.Host {
	return forcesync.Host{
		Cluster: options.Cluster, DryRun: options.DryRun, MaxSyncs: options.MaxSyncs, Alone: len(options.Namespaces) == 1,
		Client: options.Dynamic, Log: reporter.log, Tracer: options.Tracer, Now: options.Now,
		Report: reporter.reportSync, Active: reporter.metrics.syncing,
		PatchFailed: func(ctx context.Context) { reporter.metrics.patchFailed(ctx, forcesync.Kind) },
	}
}

// reportSync reports how the sync of an ExternalSecret has ended, and how long ago the watcher saw the change. If warning is not empty, it is the
// reason of a Kubernetes Event about it.
func (t *reporter) reportSync(ctx context.Context, outcome events.Outcome, warning string, took time.Duration) {
	t.outbox.add(outcome)
	if warning != "" {
		message := outcome.Reason + ": " + outcome.Message + " (" + outcome.Sources[0].Source + ")"
		t.kube.write(ctx, outcome.Workload, corev1.EventTypeWarning, warning, message, tracedBy(outcome))
	}
	t.metrics.synced(ctx, outcome.Reason, took)
}
