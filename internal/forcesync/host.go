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

	// Report reports an outcome, and how long ago the watcher saw its change. If warning is not empty, it is the reason of a Kubernetes Event.
	Report func(ctx context.Context, outcome events.Outcome, warning string, took time.Duration)
	// Active is called with 1 when an ExternalSecret takes a slot, and with -1 when it returns it.
	Active func(ctx context.Context, change int64)
	// PatchFailed is called for each failed patch that will be retried.
	PatchFailed func(ctx context.Context)
}
