package openbao

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// State is the state of a secret in a store. The zero State is not a state.
type State uint8

// The states of a secret.
const (
	Live      State = iota + 1 // can be read
	Deleted                    // the current version is deleted, and can be undeleted
	Destroyed                  // the current version is permanently destroyed
	Gone                       // neither the secret nor its metadata exists
)

// Observation is the state of one secret in a store at some time. The same state may be observed several times, by the audit log and by polls, and an
// older one after a newer one: compare ReadAt.
type Observation struct {
	// Path is the path of the secret. It is valid: Path.Source() parses back to it.
	Path events.StorePath
	// Servers are the address and the aliases of the store, in the form of events.StoreAddress.
	Servers []string
	// Lag is how long a server of the store may answer without the state, according to the configuration.
	Lag time.Duration
	// Engine is events.EngineKV, events.EngineDatabase or events.EngineLDAP.
	Engine string
	// Version is the current version in KV v2. It is zero if the engine has no versions.
	Version int64
	State   State
	// At is when the state began, by the store's clock: when the version was created or deleted, when the role's password was rotated, or else the
	// time of the audit line. It is zero if unknown.
	At time.Time
	// ReadAt is the time, by the watcher's clock, just before the request; the state is at least as new. It is zero in KV v1, where the audit line is
	// the observation.
	ReadAt time.Time
	// Request is the ID of the store's request in KV v1, where nothing else identifies a state. It is empty in other engines.
	Request string
	// Operation is create, update, patch, delete, undelete, destroy or rotate. By is the display name of the client that made the change, and Trace
	// its trace, if the store logs the traceparent header. They are empty if no audit line is about the state.
	Operation, By string
	Trace         events.TraceContext
	// PolledBefore is when the previous poll of the mount began, by the store's clock, or a time just before the earlier version that an audit line
	// names. A secret that was written before it existed then, but was not visible. It is zero if there was no such poll or line.
	PolledBefore time.Time
	// Lasting says that reads have shown the same state for longer than a server can lag behind. The sink sets it, not the feed.
	Lasting bool
	// Received is when the answer or, in KV v1, the audit line was received, by the watcher's clock.
	Received time.Time
}

// observation returns an observation of a path of the store, without its state. asked is zero if the store was not asked.
func (s *storeConfig) observation(in engineMount, path string, asked, received time.Time) Observation {
	return Observation{
		Path:    events.StorePath{Store: s.Name, Namespace: in.namespace, Mount: in.path, Path: path},
		Servers: s.servers, Lag: s.lag, Engine: in.engine, ReadAt: asked, Received: received,
	}
}

// attribute records the author and the operation of a change, and its time if the store does not report one.
func (o *Observation) attribute(e *entry, c change) {
	o.Operation, o.By, o.Trace = c.operation, e.by, e.trace
	if o.At.IsZero() {
		o.At = e.at
	}
}

// outlet passes observations to the sink, and remembers the start of the last complete poll of each mount. It is safe for concurrent use.
type outlet struct {
	sink   func(Observation) bool
	status *status
	client *client

	mu     sync.Mutex
	polled map[mountName]time.Time // by the store's clock
}

func newOutlet(sink func(Observation) bool, s *status, c *client) *outlet {
	return &outlet{sink: sink, status: s, client: c, polled: map[mountName]time.Time{}}
}

// emit offers an observation until the sink accepts it or ctx is done, and at least once.
func (out *outlet) emit(ctx context.Context, o Observation) {
	if !out.canName(ctx, o.Path) {
		return
	}
	delays := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: time.Second}
	for !out.sink(o) {
		if !kube.Sleep(ctx, delays.Step()) {
			return
		}
	}
}

// emitPolled emits an observation that does not come from an audit line.
func (out *outlet) emitPolled(ctx context.Context, o Observation) {
	out.mu.Lock()
	o.PolledBefore = out.polled[mountName{o.Path.Namespace, o.Path.Mount}]
	out.mu.Unlock()
	out.emit(ctx, o)
}

// canName reports whether events can contain a path, and records a failure otherwise. Such a path is too long or not valid text.
func (out *outlet) canName(ctx context.Context, path events.StorePath) bool {
	_, err := path.Source().StorePath()
	if err != nil {
		out.status.noteFailure(ctx, "paths that events cannot name", err)
	}
	return err == nil
}

// notePoll records that a mount was read completely. Began is when the read began, by the watcher's clock.
func (out *outlet) notePoll(name mountName, began time.Time) {
	began = began.Add(out.client.skew())
	out.mu.Lock()
	defer out.mu.Unlock()
	out.polled[name] = began
}
