package forcesync

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
)

// Host is what a Syncer needs from the program that runs it. Every field except DryRun and Alone is required.
type Host struct {
	// Cluster is the name of the cluster in outcomes.
	Cluster string
	// DryRun makes the Syncer report what it would sync, and patch nothing.
	DryRun bool
	// MaxSyncs is how many ExternalSecrets may be patched and not synced yet.
	MaxSyncs int
	// Alone says that ExternalSecrets of only one namespace are watched, which then gets all of MaxSyncs. Another gets half of what others leave.
	Alone bool

	Client dynamic.Interface
	Log    *slog.Logger
	Tracer trace.Tracer
	Now    func() time.Time

	// Publish queues an outcome for publication. It must not block.
	Publish func(events.Outcome)
	// Warn writes a Kubernetes Event of type Warning about the ExternalSecret of an outcome.
	Warn    func(ctx context.Context, outcome events.Outcome, reason, message string)
	Metrics Metrics
}

// Metrics has functions that are called to record measurements.
type Metrics struct {
	// Active is called with 1 when an ExternalSecret takes a slot, and with -1 when it returns it.
	Active func(ctx context.Context, change int64)
	// Finished is called with the reason of each outcome, and with the time since the watcher saw the change.
	Finished func(ctx context.Context, reason string, took time.Duration)
	// PatchFailed is called for each failed patch that will be retried.
	PatchFailed func(ctx context.Context)
}
