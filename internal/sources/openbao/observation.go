package openbao

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// State is the state of a secret in a store. The zero State is not a state.
type State uint8

// The states of a secret.
const (
	// Live means that the secret can be read.
	Live State = iota + 1
	// Deleted means that the current version is deleted and can be undeleted.
	Deleted
	// Destroyed means that the current version is permanently destroyed.
	Destroyed
	// Gone means that the secret and its metadata do not exist.
	Gone
)

func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Deleted:
		return "deleted"
	case Destroyed:
		return "destroyed"
	case Gone:
		return "gone"
	}
	return "unknown"
}

// Observation is the state of one secret in a store at some time. The same state may be observed several times, from the audit log and by polling.
// A state that was read may be observed after a later one: compare ReadAt.
type Observation struct {
	// Path names the secret. It is valid: Path.Source() parses back to it.
	Path events.StorePath
	// Servers are the address and the aliases of the store, in the form of events.StoreAddress.
	Servers []string
	// Engine is events.EngineKV, events.EngineDatabase or events.EngineLDAP.
	Engine string
	// Version is the current version in KV v2. It is zero if the engine has no versions.
	Version int64
	// State is the state of the secret.
	State State
	// At is when the state began, by the store's clock: when the version was created or deleted, when the role's password was rotated, or else the
	// time of the audit line. It is zero if unknown.
	At time.Time
	// ReadAt is the time, by our clock, just before the store was asked; the state is at least as new. It is zero in KV v1, where the audit line is
	// the observation.
	ReadAt time.Time
	// Request is the ID of the store's request in KV v1, where nothing else identifies a state, and empty in other engines.
	Request string
	// Operation is create, update, patch, delete, undelete, destroy or rotate. It is empty if no audit line is about the state.
	Operation string
	// By is the display name of the client that made the change. It is empty if no audit line is about the state.
	By string
	// Trace is the trace of that client, if the store logs the traceparent header and it is valid.
	Trace events.TraceContext
	// PolledBefore is when the previous poll began to read the mount, by the store's clock, or a time just before the earlier version that an audit
	// line names. A secret written before that existed then, but was not seen. It is zero if there was no such poll or line.
	PolledBefore time.Time
	// Lasting reports that reads have agreed on the state for longer than a server can lag behind. The feed leaves it to the sink to set it.
	Lasting bool
	// Received is when the answer or, in KV v1, the audit line was received, by our clock.
	Received time.Time
}

// origin makes the observations of one store.
type origin struct {
	store   string   // the name of the store
	servers []string // its addresses, in the form of events.StoreAddress
}

// ofEntry returns the observation that the line of a write in KV v1 is.
func (g origin) ofEntry(e *entry, in engineMount, c change) Observation {
	o := Observation{
		Path:    events.StorePath{Store: g.store, Namespace: in.namespace, Mount: in.path, Path: c.path},
		Servers: g.servers, Engine: in.engine, State: c.state, Received: e.received, Request: e.request,
	}
	o.attribute(e, c)
	return o
}

// ofReply returns an observation of a path that the store was asked about, without its state.
func (g origin) ofReply(in engineMount, path string, got reply) Observation {
	return Observation{
		Path:    events.StorePath{Store: g.store, Namespace: in.namespace, Mount: in.path, Path: path},
		Servers: g.servers, Engine: in.engine, ReadAt: got.asked, Received: got.received,
	}
}

// attribute records who made the change, and how, and when if the store does not say.
func (o *Observation) attribute(e *entry, c change) {
	o.Operation, o.By, o.Trace = c.operation, e.by, e.trace
	if o.At.IsZero() {
		o.At = e.at
	}
}
